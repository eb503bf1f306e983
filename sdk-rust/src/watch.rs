//! The event stream as it should be consumed: it reconnects, and resumes without a loss and without
//! a repeat.
//!
//! ```text
//!   Asking ──answered──> Reading ──broke──> Pausing ──delay over──> Asking
//!      │                    │
//!      └──final refusal─────┴──> Over
//! ```
//!
//! What has been seen, and so what to ask for next, is decided by the [`Cursor`] alone.

mod cursor;
mod options;

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use heeler_proto::v1::{WatchEventsRequest, WatchEventsResponse};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tonic::{Response, Status, Streaming};

use crate::{backoff::Backoff, client::Client, error::Error};

use cursor::Cursor;
pub use options::{WatchItem, WatchOptions};

type Answer = Result<Response<Streaming<WatchEventsResponse>>, Status>;

/// Events, from a point on, across every restart of the daemon.
///
/// It ends only with an error that reconnecting cannot cure: a revision that the daemon no longer
/// has, another state directory, another user's daemon, a bad argument. A watcher that stops polling
/// costs the daemon nothing and misses nothing.
pub struct Watch {
    client: Client,
    cursor: Cursor,
    backoff: Backoff,
    step: Step,
}

enum Step {
    Asking {
        begun: Instant,
        answer: Pin<Box<dyn Future<Output = Answer> + Send>>,
    },
    Reading {
        stream: Box<Streaming<WatchEventsResponse>>,
    },
    Pausing {
        over: Pin<Box<Sleep>>,
    },
    Over,
}

impl Watch {
    pub(crate) fn new(client: Client, options: WatchOptions) -> Self {
        let backoff = Backoff::new(options.patience);
        let cursor = Cursor::new(options.message);
        let step = ask(&client, cursor.request());
        Self {
            client,
            cursor,
            backoff,
            step,
        }
    }

    /// What comes after a failure: a pause, or the end.
    fn failed(&mut self, status: Status, lasted: Duration) -> Option<Error> {
        self.cursor.broke();
        let error = Error::from_status(status, self.client.address());
        let curable = match &error {
            Error::Refused(refusal) => !refusal.is_final(),
            Error::NotRunning { .. } | Error::Unreachable { .. } | Error::Disconnected { .. } => {
                true
            }
            Error::Address(_) | Error::Incomplete { .. } => false,
        };
        match self.backoff.after_failure(lasted).filter(|_| curable) {
            Some(pause) => {
                self.step = Step::Pausing {
                    over: Box::pin(sleep(pause)),
                };
                None
            }
            None => {
                self.step = Step::Over;
                Some(error)
            }
        }
    }

    fn answered(&mut self, answer: Answer, begun: Instant) -> Option<Error> {
        match answer {
            Ok(response) => {
                self.step = Step::Reading {
                    stream: Box::new(response.into_inner()),
                };
                None
            }
            Err(status) => self.failed(status, begun.elapsed()),
        }
    }

    fn read(&mut self, message: Option<Result<WatchEventsResponse, Status>>) -> Option<Error> {
        match message {
            Some(Ok(message)) => {
                self.backoff.reset();
                self.cursor.take(message);
                None
            }
            Some(Err(status)) => self.failed(status, Duration::ZERO),
            // The stream has no end of its own: the daemon is shutting down.
            None => self.failed(Status::unavailable("the stream ended"), Duration::ZERO),
        }
    }
}

fn ask(client: &Client, request: WatchEventsRequest) -> Step {
    let mut stub = client.raw();
    let answer = Box::pin(async move { stub.watch_events(request).await });
    Step::Asking {
        begun: Instant::now(),
        answer,
    }
}

impl Stream for Watch {
    type Item = Result<WatchItem, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(item) = this.cursor.give() {
                return Poll::Ready(Some(Ok(item)));
            }
            let failure = match &mut this.step {
                Step::Asking { begun, answer } => match answer.as_mut().poll(cx) {
                    Poll::Ready(answer) => {
                        let begun = *begun;
                        this.answered(answer, begun)
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Step::Reading { stream } => match Pin::new(&mut **stream).poll_next(cx) {
                    Poll::Ready(message) => this.read(message),
                    Poll::Pending => return Poll::Pending,
                },
                Step::Pausing { over } => match over.as_mut().poll(cx) {
                    Poll::Ready(()) => {
                        this.step = ask(&this.client, this.cursor.request());
                        None
                    }
                    Poll::Pending => return Poll::Pending,
                },
                Step::Over => return Poll::Ready(None),
            };
            if let Some(error) = failure {
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("cursor", &self.cursor)
            .finish_non_exhaustive()
    }
}
