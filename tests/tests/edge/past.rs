//! A journal with a long past, written by the journal's own code because running the tasks would take
//! minutes.

use std::{fs, path::Path, time::Duration};

use heeler_server::{
    Durability,
    internal::{
        Boot, Command, Containment, EndReason, EndState, Ended, Entry, EventKind, Journal, Kind,
        LeaderEnd, Moment, Outcome, Spec, Started, Task, Timestamp,
    },
};
use tokio::task::JoinSet;

/// Tasks that are written at the same time, and so in the same transactions.
const AT_ONCE: usize = 200;

/// Writes the three events of each of this many finished tasks.
pub(crate) async fn write(state: &Path, tasks: usize) {
    fs::create_dir_all(state).unwrap();
    let journal = Journal::open(state, Durability::Process, Boot([0; 16])).unwrap();
    for _ in 0..tasks / AT_ONCE {
        let mut writing = JoinSet::new();
        for _ in 0..AT_ONCE {
            writing.spawn(run(journal.clone()));
        }
        writing.join_all().await;
    }
    journal.close().await.unwrap();
}

async fn run(journal: Journal) {
    let seq = journal.next_seq();
    let spec = Spec {
        working_directory: Path::new("/").to_owned(),
        ..Spec::new(Command::Argv(vec!["/bin/true".to_owned()]))
    };
    let id = journal.id_key().task_id(Kind::Shell, seq);
    let mut task = Task::new(seq, id, spec, Timestamp::now());
    append(&journal, EventKind::Created, &task).await;
    let at = Moment::now();
    task.started = Some(Started {
        pid: 4711,
        start_ticks: 1,
        at,
        containment: Containment::Subreaper,
    });
    append(&journal, EventKind::Started, &task).await;
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
    append(&journal, EventKind::Ended, &task).await;
}

async fn append(journal: &Journal, kind: EventKind, task: &Task) {
    let entry = Entry {
        kind,
        task: task.clone(),
        request: None,
    };
    journal.append(entry).await.unwrap();
}
