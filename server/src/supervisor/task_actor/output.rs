//! The output of the task, as far as its actor needs it.

use std::io;

use tokio::task::spawn_blocking;

use super::TaskActor;
use crate::task::{Tail, Timestamp};

/// The size of the output tail in the event of an end.
const TAIL_BYTES: usize = 4096;

impl TaskActor {
    /// The tail of the output; empty where it cannot be read.
    pub(super) fn output_tail(&self) -> Tail {
        match self.life.task.output_bytes {
            0 => Tail::default(),
            _ => self.read_tail(TAIL_BYTES).unwrap_or_else(|error| {
                self.warn_unreadable(&error);
                Tail::default()
            }),
        }
    }

    /// The time of the latest output, and its size. Output that cannot be read is not silence.
    pub(super) fn last_output(&self) -> (Timestamp, u64) {
        match self.read_tail(1) {
            Ok(tail) => {
                let last = tail.chunks.last().map(|chunk| chunk.at);
                (last.unwrap_or_default(), tail.end)
            }
            Err(error) => {
                self.warn_unreadable(&error);
                (Timestamp::now(), self.life.task.output_bytes)
            }
        }
    }

    /// Cleans up the output of a finished foreground task: its share of memory shrinks to the size of
    /// the output. The output of a detached task goes to disk, if its shim has not moved it.
    pub(super) async fn settle_output(&self) {
        let task = &self.life.task;
        if task.spec.rules.foreground.is_none() {
            return;
        }
        self.shared.parts.task_dir.settle_memory(&task.id);
        if task.detached.is_none() {
            return;
        }
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), task.id.clone());
        let spilled = spawn_blocking(move || task_dir.spill(&id)).await;
        if let Ok(Err(error)) = spilled {
            tracing::warn!(task = %task.id, %error, "cannot move output to disk; it stays in memory");
        }
    }

    fn read_tail(&self, bytes: usize) -> io::Result<Tail> {
        match self.shared.parts.task_dir.open(&self.life.task.id)? {
            Some(file) if file.is_of(self.life.task.uid)? => file.tail(bytes),
            Some(_) | None => Ok(Tail::default()),
        }
    }

    fn warn_unreadable(&self, error: &io::Error) {
        tracing::warn!(task = %self.life.task.id, %error, "cannot read output");
    }
}
