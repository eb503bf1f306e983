//! UpdateQueue and ListQueues.

use crate::supervisor::{Supervisor, admission::QueueState};
use crate::{crash, journal::JournalError, task::QueueSettings};

/// The most queues with settings of their own: a list returns all at once.
const MAX_CONFIGURED: usize = 10_000;

/// A change of a queue's settings; `None` keeps a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct QueueChange {
    pub(crate) slots: Option<u32>,
    pub(crate) paused: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum QueueError {
    #[error("limit of configured queues reached: {0}")]
    TooMany(usize),
    #[error("cannot record the queue")]
    Journal(#[from] JournalError),
}

/// Serialises changes, so that two changes of one queue do not undo each other.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct QueueChanges(tokio::sync::Mutex<()>);

impl Supervisor {
    /// Changes a queue, and admits the tasks that can start because of it. The change is durable when
    /// this returns. It completes even if the caller disconnects.
    pub(crate) async fn update_queue(
        &self,
        name: String,
        change: QueueChange,
    ) -> Result<QueueState, QueueError> {
        let this = self.clone();
        let changed = tokio::spawn(async move {
            let _one_at_a_time = this.shared.queue_changes.0.lock().await;
            this.change_queue(&name, change).await
        });
        changed
            .await
            .unwrap_or(Err(QueueError::Journal(JournalError::Closed)))
    }

    pub(crate) fn queue(&self, name: &str) -> QueueState {
        self.shared.registry.queue(name)
    }

    /// Every queue that has live tasks or settings of its own, by name.
    pub(crate) fn queues(&self) -> Vec<QueueState> {
        self.shared.registry.queues()
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
            let is_configured = |queue: &QueueState| queue.settings != QueueSettings::default();
            let configured = registry.queues().into_iter().filter(is_configured).count();
            if configured >= MAX_CONFIGURED {
                return Err(QueueError::TooMany(configured));
            }
        }
        let recorded = self.journal().set_queue(name.to_owned(), settings);
        recorded.await?;
        crash::point("queue.recorded");
        Ok(registry.configure_queue(name, settings))
    }
}
