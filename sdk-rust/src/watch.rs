//! The event stream as it should be consumed: it reconnects, and resumes without a loss and without
//! a repeat.

mod cursor;
mod options;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use tokio_stream::Stream;

use crate::{client::Client, error::Error, resume::Resuming};

use cursor::Cursor;
pub use options::{WatchItem, WatchOptions};

/// Events, from a point on, across every restart of the daemon.
///
/// It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer
/// has, another state directory, another user's daemon, a bad argument. A watcher that stops polling
/// costs the daemon nothing and misses nothing.
pub struct Watch {
    stream: Resuming<Cursor>,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Self {
        let cursor = Cursor::new(options.message);
        Self {
            stream: Resuming::new(client, cursor, options.patience),
        }
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.poll_next(cx)
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("cursor", &self.stream.cursor)
            .finish_non_exhaustive()
    }
}
