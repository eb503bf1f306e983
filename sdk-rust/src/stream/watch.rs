//! The stream of WatchEvents. It reconnects and resumes: no event is lost or repeated.

mod cursor;
mod options;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use tokio_stream::Stream;

use super::resume::Resuming;
use crate::{client::Client, error::Error};

use cursor::Cursor;
pub use options::{WatchItem, WatchOptions};

/// Events, across restarts of the daemon.
///
/// It ends only with an error that a reconnect cannot solve: a revision that the daemon no longer has,
/// another epoch, another user's daemon, a bad argument. A watcher that stops polling costs the daemon
/// nothing and misses nothing.
pub struct Watch {
    stream: Resuming<Cursor>,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Self {
        let cursor = Cursor::new(options.message);
        Self {
            stream: Resuming::new(client, cursor, options.time_limit),
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
