//! Remove: from before its record to the deletion of the last file.

use std::{fs, path::PathBuf};

use heeler_tests::{Daemon, eventually, v1::*};

use crate::{at_each_point, doomed, restart_after};

/// The state of the tasks after the death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Kept,
    Gone,
}

at_each_point! { a_removal_interrupted:
    before_the_journal => "remove.before-journal", State::Kept;
    before_a_removal_is_committed => "journal.before-commit:7", State::Kept;
    after_a_removal_is_committed => "journal.committed:7", State::Gone;
    after_the_journal => "remove.recorded", State::Gone;
    before_the_first_file => "remove.before-file:1", State::Gone;
    between_two_files => "remove.before-file:2", State::Gone;
}

/// R3, O11, E2
async fn a_removal_interrupted(point: &str, state: State) {
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
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    use TaskEventType::{Created, Ended, Removed, Started};
    if state == State::Kept {
        assert_eq!(api.all().await.len(), 2);
        assert_eq!(api.lines(&ids[0]).await, ["one"]);
        assert_eq!(api.lines(&ids[1]).await, ["two"]);
        api.remove(&ids).await.unwrap();
    }
    assert!(api.all().await.is_empty());
    for id in &ids {
        let history = api.event_types(id).await;
        assert_eq!(history, [Created, Started, Ended, Removed]);
    }
    eventually("no file without a task", || files(&daemon).is_empty()).await;
    follower.assert_whole(&api).await;
}

fn files(daemon: &Daemon) -> Vec<PathBuf> {
    let below = |dir: PathBuf| {
        let entries = fs::read_dir(dir).unwrap();
        entries.map(|entry| entry.unwrap().path())
    };
    below(daemon.path("state/tasks")).flat_map(below).collect()
}
