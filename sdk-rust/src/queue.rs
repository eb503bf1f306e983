//! How a queue is changed.

use heeler_proto::v1::UpdateQueueRequest;

/// What to change of a queue; what is not named stays as it is.
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
    /// Of this queue, which need not have been used before.
    pub fn of(name: impl Into<String>) -> Self {
        let message = UpdateQueueRequest {
            name: name.into(),
            ..UpdateQueueRequest::default()
        };
        Self { message }
    }

    /// How many of its tasks may run at a time, 1 to 10000. What runs is not touched.
    pub fn slots(mut self, slots: u32) -> Self {
        self.message.slots = Some(slots);
        self
    }

    /// It lets no further task begin.
    pub fn pause(mut self) -> Self {
        self.message.paused = Some(true);
        self
    }

    /// It lets tasks begin again.
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
