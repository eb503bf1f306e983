//! What a task still writes when its leader is gone: a filter or a logger that the leader wrote through
//! outlives it by a moment. It is followed to the task's end, or for that moment.

use std::time::Duration;

use heeler_client::{Chunk, Output, StreamExt, Task};
use tokio::time::{Instant, timeout_at};

/// Longer than a filter needs for its last line, and too short for somebody to wonder.
const MOMENT: Duration = Duration::from_millis(300);

/// How long the rest is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    /// For a moment: whoever is left may live on.
    Moment,
    /// To the task's end, which is near.
    End,
}

/// The rest of a task's output.
#[derive(Debug)]
pub(crate) struct Drain {
    output: Output,
    until: Option<Instant>,
}

/// The next of it.
#[derive(Debug)]
pub(crate) enum Drained {
    Chunk(Chunk),
    /// The task is over, and this was all.
    Over,
    /// More may come; it is for others to read.
    Enough,
}

impl Drain {
    /// What lies behind this offset.
    pub(crate) fn from(task: &Task, offset: u64, patience: Patience) -> Self {
        let until = match patience {
            Patience::Moment => Some(Instant::now() + MOMENT),
            Patience::End => None,
        };
        let output = task.output_from(offset);
        Self { output, until }
    }

    /// It may be dropped before it is there: nothing is lost by that.
    pub(crate) async fn next(&mut self) -> Drained {
        let chunk = match self.until {
            // Somebody who writes without a pause is not waited for either.
            Some(until) if Instant::now() >= until => return Drained::Enough,
            Some(until) => timeout_at(until, self.output.next()).await,
            None => Ok(self.output.next().await),
        };
        match chunk {
            Ok(Some(Ok(chunk))) => Drained::Chunk(chunk),
            Ok(None) => Drained::Over,
            Ok(Some(Err(_))) | Err(_) => Drained::Enough,
        }
    }
}
