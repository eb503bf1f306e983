//! A long past: a state directory with as many finished tasks as a busy month leaves, written by the
//! journal's own code, since to run them would take minutes.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use crate::Result;
use heeler_server::{
    Durability,
    internal::{
        Boot, Command, Containment, EndReason, EndState, Ended, Entry, EventKind, Journal, Kind,
        LeaderEnd, Outcome, Spec, Started, Task, TaskDir, TaskId, Timestamp,
    },
};

/// How many tasks a long past has.
pub(crate) const LONG: u64 = 100_000;

/// A state directory in `dir` whose tasks, so many, are all over.
pub(crate) async fn make(dir: PathBuf, tasks: u64) -> Result<PathBuf> {
    let state = dir.join("state");
    fs::create_dir(&state)?;
    let files = TaskDir::new(&state);
    files.create()?;
    let journal = Journal::open(&state, Durability::Process, Boot([0; 16]))?;
    for _ in 0..tasks {
        let id = add(&journal).await?;
        // Its inode; what would be in it is never read here.
        File::create(files.path(&id))?;
    }
    journal.close().await?;
    Ok(state)
}

/// The three facts of a task that ran and exited.
async fn add(journal: &Journal) -> Result<TaskId> {
    let mut task = newborn(journal);
    append(journal, EventKind::Created, &task).await?;
    let at = Timestamp::now();
    task.started = Some(Started {
        pid: 4711,
        start_ticks: 1,
        at,
        containment: Containment::Cgroup,
    });
    append(journal, EventKind::Started, &task).await?;
    task.leader_end = Some(LeaderEnd {
        outcome: Outcome::Exited(0),
        at,
    });
    task.ended = Some(Ended {
        state: EndState::Completed,
        reason: EndReason::Exited,
        at,
        cpu: Duration::from_millis(1),
        max_memory: 1 << 20,
    });
    append(journal, EventKind::Ended, &task).await?;
    Ok(task.id)
}

async fn append(journal: &Journal, kind: EventKind, task: &Task) -> Result {
    journal
        .append(Entry {
            kind,
            task: task.clone(),
            request: None,
        })
        .await?;
    Ok(())
}

fn newborn(journal: &Journal) -> Task {
    let seq = journal.next_seq();
    let spec = Spec {
        working_directory: Path::new("/").to_owned(),
        ..Spec::new(Command::Argv(vec!["/bin/true".to_owned()]))
    };
    let id = journal.id_key().task_id(Kind::Shell, seq);
    Task::new(seq, id, spec, Timestamp::now())
}
