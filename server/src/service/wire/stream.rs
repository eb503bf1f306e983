//! The answer to a streaming call. The connection polls it for the next message when there is room for
//! one, so there is neither a task nor a queue in between.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
    vec,
};

use tokio_stream::Stream;
use tonic::Status;

use super::refusal::Refusal;

/// The source of a stream's messages.
pub(crate) trait Source: Sized + Send + 'static {
    type Message: Send + Unpin;

    /// Returns the next messages as soon as there are any; none at the end.
    fn next(&mut self) -> impl Future<Output = Result<Vec<Self::Message>, Refusal>> + Send;
}

/// The stream of a source.
pub(crate) struct Messages<S: Source> {
    /// Messages that wait for the client.
    ahead: vec::IntoIter<S::Message>,
    /// `None` once the source has failed or ended.
    next: Option<Next<S>>,
}

/// The source, while it produces its next messages.
type Next<S> = Pin<Box<dyn Future<Output = Result<Step<S>, Refusal>> + Send>>;
type Step<S> = (S, Vec<<S as Source>::Message>);

impl<S: Source> Messages<S> {
    pub(crate) fn of(source: S) -> Self {
        Self {
            ahead: vec::IntoIter::default(),
            next: Some(next(source)),
        }
    }
}

fn next<S: Source>(mut source: S) -> Next<S> {
    Box::pin(async move {
        let messages = source.next().await?;
        Ok((source, messages))
    })
}

impl<S: Source> Stream for Messages<S> {
    type Item = Result<S::Message, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(message) = self.ahead.next() {
            return Poll::Ready(Some(Ok(message)));
        }
        // Frees the place of those that were sent: a stream waits most of its life for the next message.
        self.ahead = vec::IntoIter::default();
        let Some(reading) = &mut self.next else {
            return Poll::Ready(None);
        };
        match ready!(reading.as_mut().poll(context)) {
            Ok((source, messages)) => {
                self.next = (!messages.is_empty()).then(|| next(source));
                self.ahead = messages.into_iter();
                Poll::Ready(self.ahead.next().map(Ok))
            }
            Err(refusal) => {
                self.next = None;
                Poll::Ready(Some(Err(refusal.into())))
            }
        }
    }
}

impl<S: Source> std::fmt::Debug for Messages<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").finish_non_exhaustive()
    }
}
