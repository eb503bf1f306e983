//! A journal with a long past.

use std::{fs, path::Path};

use heeler_server::internal::Past;
use tokio::task::JoinSet;

/// Tasks that are written at the same time, and so in the same transactions.
const AT_ONCE: usize = 200;

/// Writes the events of this many finished tasks.
pub(crate) async fn write(state: &Path, tasks: usize) {
    fs::create_dir_all(state).unwrap();
    let past = Past::open(state).unwrap();
    for _ in 0..tasks / AT_ONCE {
        let mut writing = JoinSet::new();
        for _ in 0..AT_ONCE {
            let past = past.clone();
            writing.spawn(async move { past.add_task().await.unwrap() });
        }
        writing.join_all().await;
    }
    past.close().await.unwrap();
}
