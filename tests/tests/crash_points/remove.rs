//! Remove, from before the journal forgets to the last file.

use std::{fs, path::PathBuf};

use heeler_tests::{Daemon, eventually, v1::*, watch::types};

use crate::{at_each_point, doomed, outlive};

/// Whether the tasks are forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Are {
    Kept,
    Forgotten,
}

at_each_point! { a_removal_cut_short:
    before_the_journal => "remove.before-journal", Are::Kept;
    before_a_removal_is_committed => "journal.before-commit:7", Are::Kept;
    after_a_removal_is_committed => "journal.committed:7", Are::Forgotten;
    after_the_journal => "remove.recorded", Are::Forgotten;
    before_the_first_file => "remove.before-file:1", Are::Forgotten;
    between_two_files => "remove.before-file:2", Are::Forgotten;
}

/// R3, O11, E2
async fn a_removal_cut_short(point: &str, are: Are) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let mut ids = Vec::new();
    for name in ["one", "two"] {
        let task = api
            .start(daemon.script(&format!("print {name} exit 0")))
            .await;
        ids.push(api.ended(&task.id).await.id);
    }
    assert_eq!(files(&daemon).len(), 2);
    let answer = api.remove(&ids).await;
    assert!(answer.is_err(), "an answer from the dead: {answer:?}");
    outlive(&mut daemon, point).await;

    let api = daemon.api().await;
    use TaskEventType::{Created, Ended, Removed, Started};
    if are == Are::Kept {
        assert_eq!(api.all().await.len(), 2);
        assert_eq!(api.lines(&ids[0]).await, ["one"]);
        assert_eq!(api.lines(&ids[1]).await, ["two"]);
        api.remove(&ids).await.unwrap();
    }
    assert!(api.all().await.is_empty());
    for id in &ids {
        let history = types(&api.history_of(id).await);
        assert_eq!(history, [Created, Started, Ended, Removed]);
    }
    eventually("no file that belongs to no task", || {
        files(&daemon).is_empty()
    })
    .await;
    follower.assert_whole(&api).await;
}

fn files(daemon: &Daemon) -> Vec<PathBuf> {
    let below = |dir: PathBuf| {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    below(daemon.path("state/tasks")).flat_map(below).collect()
}
