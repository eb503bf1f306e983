//! The options of UpdateQueue.

use heeler_proto::v1::UpdateQueueRequest;

/// A change of a queue's settings. A setting that is not set stays as it is.
///
/// ```
/// use heeler_client::QueueUpdate;
///
/// let wider = QueueUpdate::of("builds").slots(4);
/// let closed = QueueUpdate::of("builds").pause();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct QueueUpdate {
    message: UpdateQueueRequest,
}

impl QueueUpdate {
    /// A change of this queue, which need not exist yet.
    pub fn of(name: impl Into<String>) -> Self {
        let message = UpdateQueueRequest {
            name: name.into(),
            ..UpdateQueueRequest::default()
        };
        Self { message }
    }

    /// Maximum number of tasks that run at a time, 1 to 10000. Running tasks are not affected.
    pub fn slots(mut self, slots: u32) -> Self {
        self.message.slots = Some(slots);
        self
    }

    /// Admits no further task.
    pub fn pause(mut self) -> Self {
        self.message.paused = Some(true);
        self
    }

    /// Admits tasks again.
    pub fn resume(mut self) -> Self {
        self.message.paused = Some(false);
        self
    }
}

impl From<QueueUpdate> for UpdateQueueRequest {
    fn from(update: QueueUpdate) -> Self {
        update.message
    }
}
