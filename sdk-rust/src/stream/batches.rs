//! A stream over calls that each return some items and a cursor for the next call.

use std::{
    collections::VecDeque,
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use tokio_stream::Stream;

use crate::error::Error;

type Fetched<C, T> = Pin<Box<dyn Future<Output = Result<Batch<C, T>, Error>> + Send>>;

/// The result of one call.
pub(crate) struct Batch<C, T> {
    pub(crate) items: VecDeque<T>,
    /// The cursor of the next call; `None`: this was the last.
    pub(crate) next: Option<C>,
}

/// Items of type `T`, fetched in batches by a cursor of type `C`. A call is made only when the stream is
/// polled and the last batch is used up.
pub(crate) struct Batches<C, T> {
    fetch: Box<dyn FnMut(C) -> Fetched<C, T> + Send>,
    step: Step<C, T>,
    ready: VecDeque<T>,
}

enum Step<C, T> {
    Ask(C),
    Asked(Fetched<C, T>),
    Over,
}

impl<C, T> Batches<C, T> {
    pub(crate) fn new<F>(first: C, mut fetch: impl FnMut(C) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<Batch<C, T>, Error>> + Send + 'static,
    {
        Self {
            fetch: Box::new(move |cursor| Box::pin(fetch(cursor))),
            step: Step::Ask(first),
            ready: VecDeque::new(),
        }
    }

    /// Ends the stream, also after its first error.
    fn settle(&mut self, fetched: Result<Batch<C, T>, Error>) -> Option<Error> {
        match fetched {
            Ok(batch) => {
                self.ready = batch.items;
                self.step = batch.next.map_or(Step::Over, Step::Ask);
                None
            }
            Err(error) => {
                self.step = Step::Over;
                Some(error)
            }
        }
    }
}

impl<C: Unpin, T: Unpin> Stream for Batches<C, T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(item)));
            }
            match std::mem::replace(&mut self.step, Step::Over) {
                Step::Ask(cursor) => self.step = Step::Asked((self.fetch)(cursor)),
                Step::Asked(mut fetched) => {
                    let Poll::Ready(done) = fetched.as_mut().poll(cx) else {
                        self.step = Step::Asked(fetched);
                        return Poll::Pending;
                    };
                    if let Some(error) = self.settle(done) {
                        return Poll::Ready(Some(Err(error)));
                    }
                }
                Step::Over => return Poll::Ready(None),
            }
        }
    }
}

impl<C, T> fmt::Debug for Batches<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches")
            .field("ready", &self.ready.len())
            .finish_non_exhaustive()
    }
}
