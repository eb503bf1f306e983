//! How tasks are stopped.

use std::time::Duration;

use heeler_proto::v1::{CancelMode, CancelRequest, cancel_request::Target};

use crate::time;

/// How to stop a task. Unless told otherwise, the answer comes when every process is proven gone.
///
/// ```
/// use std::time::Duration;
/// use heeler_client::CancelOptions;
///
/// let options = CancelOptions::graceful().grace(Duration::from_secs(1)).reason("superseded");
/// let at_once = CancelOptions::force();
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CancelOptions {
    message: CancelRequest,
}

impl CancelOptions {
    /// The stop signal, then the grace, then a kill of the whole tree.
    pub fn graceful() -> Self {
        Self::with_mode(CancelMode::Graceful)
    }

    /// A kill of the whole tree at once.
    pub fn force() -> Self {
        Self::with_mode(CancelMode::Force)
    }

    fn with_mode(mode: CancelMode) -> Self {
        let message = CancelRequest {
            mode: mode.into(),
            wait: true,
            ..CancelRequest::default()
        };
        Self { message }
    }

    /// Instead of the task's own grace. Only with graceful.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.message.grace = Some(time::to_proto(grace));
        self
    }

    /// Instead of the task's own stop signal, e.g. `SIGINT`. Only with graceful.
    pub fn signal(mut self, name: impl Into<String>) -> Self {
        self.message.signal = name.into();
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

    /// Answer as soon as the intent is durable.
    pub fn no_wait(mut self) -> Self {
        self.message.wait = false;
        self
    }

    /// First stop the tasks that it spawned, and theirs.
    pub fn cascade(mut self) -> Self {
        self.message.cascade = true;
        self
    }

    /// The request that stops these in this way.
    pub fn of(self, target: Target) -> CancelRequest {
        CancelRequest {
            target: Some(target),
            ..self.message
        }
    }
}

impl Default for CancelOptions {
    fn default() -> Self {
        Self::graceful()
    }
}
