//! Queues, from outside: how they are set, and how they are.

use super::{Supervisor, admission::QueueState};
use crate::{crash, journal::JournalError, task::QueueSettings};

/// How many queues may be set: whoever lists them gets all at once.
const MAX_SET: usize = 10_000;

/// What is to be changed of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueChange {
    /// How many of its tasks may run at a time; `None`: as it is.
    pub slots: Option<u32>,
    /// Whether it lets no further task begin; `None`: as it is.
    pub paused: Option<bool>,
}

/// Why a queue was not changed.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// Too many are set.
    #[error("{0} queues are set already, and no more can be")]
    TooMany(usize),
    /// It could not be recorded.
    #[error("the queue could not be recorded")]
    Journal(#[from] JournalError),
}

/// Queues are changed one after the other, so that two changes of one do not undo each other.
#[derive(Debug, Default)]
pub(super) struct QueueChanges(tokio::sync::Mutex<()>);

impl Supervisor {
    /// Changes a queue; durable when this returns. Whose turn has come by that begins.
    pub async fn update_queue(
        &self,
        name: String,
        change: QueueChange,
    ) -> Result<QueueState, QueueError> {
        let this = self.clone();
        // In a future of its own: what is recorded is also done, though the caller leaves.
        let changed = tokio::spawn(async move {
            let _turn = this.shared.queue_changes.0.lock().await;
            this.change_queue(&name, change).await
        });
        changed
            .await
            .unwrap_or(Err(QueueError::Journal(JournalError::Closed)))
    }

    async fn change_queue(
        &self,
        name: &str,
        change: QueueChange,
    ) -> Result<QueueState, QueueError> {
        let registry = &self.shared.registry;
        let before = registry.queue(name);
        let settings = QueueSettings {
            slots: change.slots.unwrap_or(before.settings.slots),
            paused: change.paused.unwrap_or(before.settings.paused),
        };
        if settings == before.settings {
            return Ok(before);
        }
        if before.settings == QueueSettings::default() {
            let set = |queue: &QueueState| queue.settings != QueueSettings::default();
            let count = registry.queues().into_iter().filter(set).count();
            if count >= MAX_SET {
                return Err(QueueError::TooMany(count));
            }
        }
        let journal = &self.parts().journal;
        journal.set_queue(name.to_owned(), settings).await?;
        crash::point("queue.recorded");
        Ok(registry.configure(name, settings))
    }

    /// Every queue that has live tasks, or settings that differ from the defaults, by name.
    pub fn queues(&self) -> Vec<QueueState> {
        self.shared.registry.queues()
    }
}
