//! Standard input that tells when the client has closed it, so that calls which wait end at once.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use heeler_client::CancellationToken;
use tokio::io::{AsyncRead, ReadBuf};

#[derive(Debug)]
pub(crate) struct Input<R> {
    inner: R,
    closed: CancellationToken,
}

impl<R> Input<R> {
    pub(crate) fn new(inner: R, closed: CancellationToken) -> Self {
        Self { inner, closed }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Input<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buffer);
        let is_end = match &read {
            Poll::Ready(Ok(())) => buffer.filled().len() == before,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if is_end {
            self.closed.cancel();
        }
        read
    }
}
