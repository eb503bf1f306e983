//! The options of Detach.

use std::time::Duration;

use heeler_proto::v1::{DetachRequest, TaskFilter};

use crate::time;

/// The options of a detach: the same processes continue, without the foreground timeout.
///
/// ```
/// use std::time::Duration;
/// use heeler_client::DetachOptions;
///
/// let options = DetachOptions::new().timeout(Duration::from_secs(600)).reason("the user pressed a key");
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
pub struct DetachOptions {
    message: DetachRequest,
}

impl DetachOptions {
    /// The task keeps its own timeout; no reason.
    pub fn new() -> Self {
        Self::default()
    }

    /// The timeout from here on. It replaces the task's own.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.message.timeout = Some(time::to_proto(timeout));
        self
    }

    /// The reason, which is kept with the task.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.message.reason = reason.into();
        self
    }

    /// The name of the requester, which is kept with the task.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.message.actor = actor.into();
        self
    }

    /// The request that detaches the tasks of this filter.
    pub fn of(self, filter: impl Into<TaskFilter>) -> DetachRequest {
        DetachRequest {
            filter: Some(filter.into()),
            ..self.message
        }
    }
}
