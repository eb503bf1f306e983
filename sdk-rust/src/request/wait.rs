//! The condition of a wait.

use std::time::Duration;

use heeler_proto::v1::{OutputSearch, WaitCondition, WaitRequest};

use super::Filter;
use crate::time;

/// The condition of a wait. The end of a wait never ends a task.
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
    /// Until all of these tasks are finished.
    pub fn all<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        Self::new(Filter::all().tasks(ids))
    }

    /// Until one of these tasks is finished.
    pub fn any<S: Into<String>>(ids: impl IntoIterator<Item = S>) -> Self {
        Self::count(1, ids)
    }

    /// Until this many of these tasks are finished.
    pub fn count<S: Into<String>>(count: u32, ids: impl IntoIterator<Item = S>) -> Self {
        let mut wait = Self::all(ids);
        wait.message.count = Some(count);
        wait
    }

    /// Until every task of a session is finished, including tasks that start during the wait.
    pub fn session(id: impl Into<String>) -> Self {
        Self::new(Filter::all().session(id))
    }

    fn new(filter: Filter) -> Self {
        Self {
            message: WaitRequest {
                filter: Some(filter.into()),
                ..WaitRequest::default()
            },
        }
    }

    /// Until they are in the background or finished, instead of finished.
    pub fn out_of_foreground(mut self) -> Self {
        self.message.until = WaitCondition::OutOfForeground.into();
        self
    }

    /// Until each of them has written a line that matches a regular expression, instead of finished. The wait
    /// also ends, unsatisfied, once too many of them are finished without such a line.
    pub fn matching(mut self, regex: impl Into<String>) -> Self {
        self.message.until = WaitCondition::Matched.into();
        self.message.r#match = Some(OutputSearch {
            regex: regex.into(),
            ..OutputSearch::default()
        });
        self
    }

    /// Until it is known whether they are ready, instead of finished: they are, or were not in time, or
    /// have ended.
    pub fn ready(mut self) -> Self {
        self.message.until = WaitCondition::Ready.into();
        self
    }

    /// Maximum time to wait. Zero: answer at once.
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
