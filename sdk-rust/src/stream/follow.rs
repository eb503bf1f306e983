//! The stream of FollowOutput. It reconnects and resumes: no output is lost or repeated.

mod cursor;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use heeler_proto::v1::{BackgroundTask, FollowOutputRequest};
use tokio_stream::Stream;

use super::{Chunk, resume::Resuming};
use crate::{client::Client, error::Error};
use cursor::Cursor;

/// An item of a stream over many tasks.
#[derive(Debug, Clone, PartialEq)]
pub enum FollowItem {
    /// The stream begins to follow this task.
    Task(BackgroundTask),
    /// A piece of the output of one task.
    Output { task_id: String, chunk: Chunk },
    /// A task is finished, and all its output was returned.
    Ended(BackgroundTask),
    /// A task with this id does not exist any more.
    Gone(String),
}

/// The output of many tasks, across restarts of the daemon.
///
/// With `FOLLOW_UNTIL_FINISHED` it ends after the last task, else only with an error that a reconnect cannot
/// solve.
pub struct Follow {
    stream: Resuming<Cursor>,
}

impl Follow {
    pub(crate) fn new(client: Client, request: FollowOutputRequest) -> Self {
        Self {
            stream: Resuming::new(client, Cursor::new(request), None),
        }
    }

    /// Ends with an error once the daemon has been unavailable for this long. By default there is no
    /// limit.
    pub fn give_up_after(mut self, limit: Duration) -> Self {
        self.stream.give_up_after(limit);
        self
    }
}

impl Stream for Follow {
    type Item = Result<FollowItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next(cx)
    }
}

impl fmt::Debug for Follow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follow")
            .field("cursor", &self.stream.cursor)
            .finish_non_exhaustive()
    }
}
