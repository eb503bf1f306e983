//! What to wait for.

use std::time::Duration;

use heeler_proto::v1::{WaitCondition, WaitRequest};

use crate::time;

/// What to wait for. Ending a wait, however it ends, ends no task.
///
/// ```
/// use std::time::Duration;
/// use heeler_client::Wait;
///
/// let first_two = Wait::count(2, ["shell-a", "shell-b", "shell-c"]);
/// let quiet = Wait::session("s1").timeout(Duration::from_secs(60));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    message: WaitRequest,
}

impl Wait {
    /// Until all of these are over.
    pub fn all<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        let task_ids = ids.into_iter().map(Into::into).collect();
        Self {
            message: WaitRequest {
                task_ids,
                ..WaitRequest::default()
            },
        }
    }

    /// Until one of these is over.
    pub fn any<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        Self::count(1, ids)
    }

    /// Until so many of these are over.
    pub fn count<S: Into<String>>(count: u32, ids: impl IntoIterator<Item = S>) -> Self {
        let mut wait = Self::all(ids);
        wait.message.count = Some(count);
        wait
    }

    /// Until every task of a session is over, those included that start meanwhile.
    pub fn session(id: impl Into<String>) -> Self {
        Self {
            message: WaitRequest {
                session_id: id.into(),
                ..WaitRequest::default()
            },
        }
    }

    /// Until they are released rather than over: until they hold nobody in the foreground.
    pub fn out_of_foreground(mut self) -> Self {
        self.message.until = WaitCondition::OutOfForeground.into();
        self
    }

    /// For so long at most; zero: only look.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.message.timeout = Some(time::to_proto(timeout));
        self
    }
}

impl From<Wait> for WaitRequest {
    fn from(wait: Wait) -> Self {
        wait.message
    }
}
