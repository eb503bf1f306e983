//! A state directory with many finished tasks.

use std::{
    fs::{self, File},
    path::PathBuf,
};

use heeler_server::internal::{Past, TaskDir};

use crate::Result;

/// Number of finished tasks.
pub(crate) const LONG: u64 = 100_000;

/// Creates a state directory in `dir` with this many finished tasks.
pub(crate) async fn make(dir: PathBuf, tasks: u64) -> Result<PathBuf> {
    let state = dir.join("state");
    fs::create_dir(&state)?;
    let files = TaskDir::new(&state);
    files.create()?;
    let past = Past::open(&state)?;
    for _ in 0..tasks {
        let id = past.add_task().await?;
        // The content of the file is never read here.
        File::create(files.path(&id))?;
    }
    past.close().await?;
    Ok(state)
}
