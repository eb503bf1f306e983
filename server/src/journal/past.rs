//! Finished tasks that never ran, for tests and benchmarks that need many: running them would take minutes.

use std::{path::Path, time::Duration};

use super::{Boot, Durability, Entry, Journal, JournalError};
use crate::task::{
    Command, Containment, EndReason, EndState, Ended, EventKind, Kind, Leader, LeaderEnd, Moment,
    Outcome, Spec, Started, StartedBy, Task, TaskId, Timestamp,
};

/// The journal of a state directory that no server has open. Its clones are the same journal.
#[derive(Debug, Clone)]
pub struct Past(Journal);

impl Past {
    pub fn open(state_dir: &Path) -> Result<Self, JournalError> {
        let journal = Journal::open(state_dir, Durability::Process, Boot([0; 16]))?;
        Ok(Self(journal))
    }

    /// Appends the three events of a task that ran and exited with 0.
    pub async fn add_task(&self) -> Result<TaskId, JournalError> {
        let seq = self.0.next_seq();
        let spec = Spec {
            working_directory: "/".into(),
            ..Spec::new(Command::Argv(vec!["/bin/true".to_owned()]))
        };
        let id = self.0.id_key().task_id(Kind::Shell, seq);
        let mut task = Task::new(seq, id, spec, Timestamp::now());
        self.append(EventKind::Created, &task).await?;
        let at = Moment::now();
        task.started = Some(Started {
            at,
            by: StartedBy::Leader(Leader {
                pid: 4711,
                start_ticks: 1,
                containment: Containment::Subreaper,
            }),
        });
        self.append(EventKind::Started, &task).await?;
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
        self.append(EventKind::Ended, &task).await?;
        Ok(task.id)
    }

    pub async fn close(&self) -> Result<(), JournalError> {
        self.0.close().await
    }

    async fn append(&self, kind: EventKind, task: &Task) -> Result<(), JournalError> {
        let entry = Entry {
            kind,
            task: task.clone(),
            request: None,
        };
        self.0.append(entry).await.map(drop)
    }
}
