//! Output that a task writes after its leader has exited: a filter or a logger that the leader wrote
//! through outlives it for a moment.

use std::time::Duration;

use heeler_client::{Chunk, Output, StreamExt, Task};
use tokio::time::{Instant, timeout_at};

/// Long enough for the last line of a filter, too short for a person to notice.
const SHORT_LIMIT: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadUntil {
    /// The orphans may live for long.
    ShortLimit,
    /// The task is about to finish.
    TaskEnd,
}

#[derive(Debug)]
pub(crate) struct LateOutput {
    output: Output,
    deadline: Option<Instant>,
}

#[derive(Debug)]
pub(crate) enum LateItem {
    Chunk(Chunk),
    /// The task has finished and all output is read.
    TaskFinished,
    /// More output may follow; it is not read here.
    LimitReached,
}

impl LateOutput {
    pub(crate) fn open(task: &Task, offset: u64, until: ReadUntil) -> Self {
        let deadline = match until {
            ReadUntil::ShortLimit => Some(Instant::now() + SHORT_LIMIT),
            ReadUntil::TaskEnd => None,
        };
        let output = task.output_from(offset);
        Self { output, deadline }
    }

    /// Cancel safe: a dropped future loses no output.
    pub(crate) async fn next(&mut self) -> LateItem {
        let chunk = match self.deadline {
            // Also for a process that writes without a pause.
            Some(deadline) if Instant::now() >= deadline => return LateItem::LimitReached,
            Some(deadline) => timeout_at(deadline, self.output.next()).await,
            None => Ok(self.output.next().await),
        };
        match chunk {
            Ok(Some(Ok(chunk))) => LateItem::Chunk(chunk),
            Ok(None) => LateItem::TaskFinished,
            Ok(Some(Err(_))) | Err(_) => LateItem::LimitReached,
        }
    }
}
