//! The output of the task, as far as its actor needs it.

use tokio::task::spawn_blocking;

use super::TaskActor;
use crate::{
    supervisor::tails,
    task::{Placement, Timestamp},
};

impl TaskActor {
    /// The time of the latest output, and its size. Output that cannot be read is not silence.
    pub(super) fn last_output(&self) -> (Timestamp, u64) {
        match tails::read_tail(&self.shared.parts.task_dir, &self.life.task, 1) {
            Ok(tail) => {
                let tail = tail.unwrap_or_default();
                let last = tail.chunks.last().map(|chunk| chunk.at);
                (last.unwrap_or_default(), tail.end)
            }
            Err(error) => {
                tracing::warn!(task = %self.life.task.id, %error, "cannot read output");
                (Timestamp::now(), self.life.task.output_bytes)
            }
        }
    }

    /// Cleans up the output of a finished foreground task: its share of memory shrinks to the size of
    /// the output. That of a task that left the foreground goes to disk, if its shim has not moved it.
    pub(super) async fn settle_output(&self) {
        let task = &self.life.task;
        if task.spec.foreground.is_none() {
            return;
        }
        self.shared.parts.task_dir.settle_memory(&task.id);
        match task.placement() {
            Placement::Foreground => return,
            Placement::Background => {}
        }
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), task.id.clone());
        let spilled = spawn_blocking(move || task_dir.spill(&id)).await;
        if let Ok(Err(error)) = spilled {
            tracing::warn!(task = %task.id, %error, "cannot move output to disk; it stays in memory");
        }
    }
}
