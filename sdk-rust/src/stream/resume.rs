//! A stream of the daemon that is resumed where it broke.
//!
//! ```text
//!   Asking ──answered──> Reading ──broke──> Pausing ──delay over──> Asking
//!      │                    │
//!      └──final refusal─────┴──last message──> Over
//! ```
//!
//! The [`Cursor`] alone decides what was received and what to request next.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;
use tonic::{Response, Status, Streaming};

use crate::{
    backoff::Backoff,
    client::{Client, Stub},
    error::Error,
};

/// The pending answer of a streaming call.
pub(crate) type Asked<M> =
    Pin<Box<dyn Future<Output = Result<Response<Streaming<M>>, Status>> + Send>>;

/// The position of a stream: what was received, and what to request next.
pub(crate) trait Cursor {
    /// A message of the daemon.
    type Message;
    /// An item for the consumer.
    type Item;

    /// Requests what was not received yet.
    fn ask(&self, stub: Stub) -> Asked<Self::Message>;

    /// Processes a message.
    fn take(&mut self, message: Self::Message) -> Result<(), Error>;

    /// Returns the next item for the consumer.
    fn give(&mut self) -> Option<Self::Item>;

    /// Called when the connection breaks.
    fn broke(&mut self);

    /// Maximum delay before the next attempt.
    fn longest_pause(&self) -> Duration;

    /// True after the last item.
    fn is_over(&self) -> bool;
}

/// The items of a cursor, across restarts of the daemon.
pub(crate) struct Resuming<C: Cursor> {
    client: Client,
    pub(crate) cursor: C,
    backoff: Backoff,
    step: Step<C::Message>,
}

enum Step<M> {
    Asking { begun: Instant, answer: Asked<M> },
    Reading { stream: Box<Streaming<M>> },
    Pausing { over: Pin<Box<Sleep>> },
    Over,
}

impl<C: Cursor> Resuming<C> {
    /// `time_limit` bounds the time for which the daemon may be unavailable; `None`: no limit.
    pub(crate) fn new(client: Client, cursor: C, time_limit: Option<Duration>) -> Self {
        let step = ask(&client, &cursor);
        Self {
            client,
            cursor,
            backoff: Backoff::new(time_limit),
            step,
        }
    }

    /// Bounds the time for which the daemon may be unavailable.
    pub(crate) fn give_up_after(&mut self, limit: Duration) {
        self.backoff = Backoff::new(Some(limit));
    }

    /// Pauses after a failure, or ends the stream.
    fn failed(&mut self, status: Status, lasted: Duration) -> Option<Error> {
        self.cursor.broke();
        let error = Error::from_status(status, self.client.address());
        let curable = match &error {
            Error::Refused(refusal) => !refusal.is_final(),
            Error::NotRunning { .. } | Error::Unreachable { .. } | Error::Disconnected { .. } => {
                true
            }
            Error::Address(_)
            | Error::Credentials(_)
            | Error::NotInstalled { .. }
            | Error::DaemonStart { .. }
            | Error::Worker(_)
            | Error::Incomplete { .. } => false,
        };
        self.backoff.no_longer_than(self.cursor.longest_pause());
        let pause = self.backoff.after_failure(error.attempt(lasted));
        match pause.filter(|_| curable) {
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

    fn read(&mut self, message: Option<Result<C::Message, Status>>) -> Option<Error> {
        match message {
            Some(Ok(message)) => {
                self.backoff.reset();
                let taken = self.cursor.take(message);
                if taken.is_err() || self.cursor.is_over() {
                    self.step = Step::Over;
                }
                taken.err()
            }
            Some(Err(status)) => self.failed(status, Duration::ZERO),
            // A stream without a last message: the daemon is shutting down.
            None => self.failed(Status::unavailable("the stream ended"), Duration::ZERO),
        }
    }

    /// Makes one step.
    fn advance(&mut self, cx: &mut Context<'_>) -> Poll<Option<Error>> {
        let failure = match &mut self.step {
            Step::Asking { begun, answer } => match answer.as_mut().poll(cx) {
                Poll::Ready(Ok(response)) => {
                    self.step = Step::Reading {
                        stream: Box::new(response.into_inner()),
                    };
                    None
                }
                Poll::Ready(Err(status)) => {
                    let lasted = begun.elapsed();
                    self.failed(status, lasted)
                }
                Poll::Pending => return Poll::Pending,
            },
            Step::Reading { stream } => match Pin::new(&mut **stream).poll_next(cx) {
                Poll::Ready(message) => self.read(message),
                Poll::Pending => return Poll::Pending,
            },
            Step::Pausing { over } => match over.as_mut().poll(cx) {
                Poll::Ready(()) => {
                    self.step = ask(&self.client, &self.cursor);
                    None
                }
                Poll::Pending => return Poll::Pending,
            },
            Step::Over => None,
        };
        Poll::Ready(failure)
    }

    /// The `poll_next` of a stream.
    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<C::Item, Error>>> {
        loop {
            if let Some(item) = self.cursor.give() {
                return Poll::Ready(Some(Ok(item)));
            }
            if matches!(self.step, Step::Over) {
                return Poll::Ready(None);
            }
            match self.advance(cx) {
                Poll::Ready(Some(error)) => return Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}

fn ask<C: Cursor>(client: &Client, cursor: &C) -> Step<C::Message> {
    Step::Asking {
        begun: Instant::now(),
        answer: cursor.ask(client.raw()),
    }
}
