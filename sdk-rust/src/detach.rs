//! How tasks are put into the background.

use std::time::Duration;

use heeler_proto::v1::{DetachRequest, detach_request::Target};

use crate::time;

/// How to put a task into the background: the same processes, no foreground timeout any more.
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
    /// With the timeout that the task was spawned with, and no reason.
    pub fn new() -> Self {
        Self::default()
    }

    /// How long the task may run from here on, instead of the timeout it was spawned with.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.message.timeout = Some(time::to_proto(timeout));
        self
    }

    /// Why; kept with the task.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.message.reason = reason.into();
        self
    }

    /// Who asks; kept with the task.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.message.actor = actor.into();
        self
    }

    /// The request that detaches these in this way.
    pub fn of(self, target: Target) -> DetachRequest {
        DetachRequest {
            target: Some(target),
            ..self.message
        }
    }
}
