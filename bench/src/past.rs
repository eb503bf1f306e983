//! A state directory with many finished tasks, written by the journal's own code because running them
//! would take minutes.

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
        LeaderEnd, Moment, Outcome, Spec, Started, Task, TaskDir, TaskId, Timestamp,
    },
};

/// Number of finished tasks.
pub(crate) const LONG: u64 = 100_000;

/// Creates a state directory in `dir` with this many finished tasks.
pub(crate) async fn make(dir: PathBuf, tasks: u64) -> Result<PathBuf> {
    let state = dir.join("state");
    fs::create_dir(&state)?;
    let files = TaskDir::new(&state);
    files.create()?;
    let journal = Journal::open(&state, Durability::Process, Boot([0; 16]))?;
    for _ in 0..tasks {
        let id = add(&journal).await?;
        // The content of the file is never read here.
        File::create(files.path(&id))?;
    }
    journal.close().await?;
    Ok(state)
}

/// Appends the three events of a task that ran and exited.
async fn add(journal: &Journal) -> Result<TaskId> {
    let mut task = new_task(journal);
    append(journal, EventKind::Created, &task).await?;
    let at = Moment::now();
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
        at: at.wall,
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

fn new_task(journal: &Journal) -> Task {
    let seq = journal.next_seq();
    let spec = Spec {
        working_directory: Path::new("/").to_owned(),
        ..Spec::new(Command::Argv(vec!["/bin/true".to_owned()]))
    };
    let id = journal.id_key().task_id(Kind::Shell, seq);
    Task::new(seq, id, spec, Timestamp::now())
}
