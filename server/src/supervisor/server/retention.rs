//! Retention: deletes the tasks that a client removes, and prunes finished tasks and old events beyond
//! the limits.
//!
//! | file | contents |
//! | --- | --- |
//! | `pruner` | keeps finished tasks and events within the limits |
//! | `limits` | the choice of the tasks to remove: pure |
//! | `output_budget` | the disk space for output, and the live tasks that take too much of it |
//! | `memory_room` | removes finished foreground tasks when new ones need their memory |
//! | `removal` | the removal itself |

mod limits;
mod memory_room;
mod output_budget;
mod pruner;
mod removal;

use std::sync::Arc;

use crate::{
    config::Retention,
    journal::JournalError,
    supervisor::{JobGuard, Supervisor},
    task::TaskId,
};

pub(in crate::supervisor) use memory_room::MemoryRoom;
pub(in crate::supervisor) use output_budget::OutputBudget;

impl Supervisor {
    /// Removes finished tasks, then deletes their output. It runs to its end though the caller leaves.
    pub(crate) async fn remove(&self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let removed = tokio::spawn(async move { removal::remove(&shared, ids).await });
        removed.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Prunes in the background, until the server shuts down.
    pub(crate) fn start_pruning(&self, limits: Retention) {
        let job = || JobGuard::new(&self.shared);
        tokio::spawn(pruner::run(job(), limits));
        tokio::spawn(memory_room::run(job()));
    }
}

/// Logs an error with its sources.
fn log_failure(error: &(dyn std::error::Error + 'static)) {
    tracing::warn!(error, "retention pass failed; will retry");
}
