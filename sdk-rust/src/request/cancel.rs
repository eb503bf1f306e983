//! The options of Cancel.

use std::time::Duration;

use heeler_proto::v1::{CancelRequest, ForcedStop, StopPolicy, TaskFilter, cancel_request::How};

use crate::time;

/// The options of a cancel. By default the answer comes when every process is proven gone, or after
/// 10 s of killing with the survivors in `task.stop.proof`.
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
    /// The task's own stop policy: the signal, the grace, then a kill of the whole tree.
    pub fn graceful() -> Self {
        Self::new(None)
    }

    /// A kill of the whole tree at once.
    pub fn force() -> Self {
        Self::new(Some(How::Force(ForcedStop {})))
    }

    fn new(how: Option<How>) -> Self {
        let message = CancelRequest {
            how,
            wait: true,
            ..CancelRequest::default()
        };
        Self { message }
    }

    /// Overrides the task's own grace. A forced stop becomes a graceful one.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.policy().grace = Some(time::to_proto(grace));
        self
    }

    /// Overrides the task's own soft grace. A forced stop becomes a graceful one.
    pub fn soft_grace(mut self, grace: Duration) -> Self {
        self.policy().soft_grace = Some(time::to_proto(grace));
        self
    }

    /// Overrides the task's own signal, such as `SIGINT`. A forced stop becomes a graceful one.
    pub fn signal(mut self, name: impl Into<String>) -> Self {
        self.policy().signal = name.into();
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

    /// Answers as soon as the intent is durable.
    pub fn no_wait(mut self) -> Self {
        self.message.wait = false;
        self
    }

    /// Stops the tasks that it spawned, and theirs, first.
    pub fn cascade(mut self) -> Self {
        self.message.cascade = true;
        self
    }

    /// The request that stops the tasks of this filter.
    pub fn of(self, filter: impl Into<TaskFilter>) -> CancelRequest {
        CancelRequest {
            filter: Some(filter.into()),
            ..self.message
        }
    }

    fn policy(&mut self) -> &mut StopPolicy {
        let how = &mut self.message.how;
        if !matches!(how, Some(How::Graceful(_))) {
            *how = Some(How::Graceful(StopPolicy::default()));
        }
        match how {
            Some(How::Graceful(policy)) => policy,
            Some(How::Force(_)) | None => unreachable!("it was set above"),
        }
    }
}

impl Default for CancelOptions {
    fn default() -> Self {
        Self::graceful()
    }
}
