//! The body of a request with many messages. Each message is limited in size, and a large one takes memory
//! of its client's share while it arrives.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use http_body::{Body as HttpBody, Frame};
use prost::bytes::Bytes;
use tonic::{Status, body::Body};

use super::{
    request_body::{PREFIX, SMALL},
    shares::{Caller, Share, Shares},
};
use crate::service::wire::refusal::Refusal;

/// A body whose messages are measured as they arrive.
struct Measured {
    body: Body,
    caller: Caller,
    memory: Shares,
    position: Position,
    /// The share of the message that is arriving.
    share: Option<Share>,
    /// A piece that waits for the memory of its message.
    waiting: Option<(Bytes, Wait)>,
}

type Wait = Pin<Box<dyn Future<Output = Share> + Send>>;

/// The place in the stream of messages.
#[derive(Debug)]
struct Position {
    largest: usize,
    /// The part of the next message's prefix that has arrived.
    prefix: Vec<u8>,
    /// The size of the message that is arriving, and the rest of it that has not arrived.
    size: usize,
    rest: usize,
}

/// A message is larger than the server accepts.
#[derive(Debug, PartialEq, Eq)]
struct TooLarge;

/// Limits the messages of a body.
pub(super) fn measured(body: Body, caller: Caller, memory: Shares, largest: usize) -> Body {
    Body::new(Measured {
        body,
        caller,
        memory,
        position: Position::new(largest),
        share: None,
        waiting: None,
    })
}

impl Position {
    fn new(largest: usize) -> Self {
        Self {
            largest,
            prefix: Vec::with_capacity(PREFIX),
            size: 0,
            rest: 0,
        }
    }

    /// Moves over a piece. Returns the size of the message that is not whole after it; 0 if all are.
    fn advance(&mut self, mut piece: &[u8]) -> Result<usize, TooLarge> {
        while !piece.is_empty() {
            if self.rest == 0 {
                let missing = (PREFIX - self.prefix.len()).min(piece.len());
                let (prefix, after) = piece.split_at(missing);
                self.prefix.extend_from_slice(prefix);
                piece = after;
                let Some([_, length @ ..]) = self.prefix.first_chunk::<PREFIX>() else {
                    break;
                };
                self.size = u32::from_be_bytes(*length) as usize;
                if self.size > self.largest {
                    return Err(TooLarge);
                }
                self.rest = self.size;
                self.prefix.clear();
            }
            let arrived = self.rest.min(piece.len());
            self.rest -= arrived;
            piece = &piece[arrived..];
        }
        Ok(match self.rest {
            0 => 0,
            _ => self.size,
        })
    }
}

impl HttpBody for Measured {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = self.get_mut();
        if let Some((_, wait)) = &mut this.waiting {
            this.share = Some(ready!(wait.as_mut().poll(context)));
        }
        if let Some((piece, _)) = this.waiting.take() {
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        // The messages before this point were taken out of the buffer, or are small.
        if this.position.rest == 0 {
            this.share = None;
        }
        let frame = match ready!(Pin::new(&mut this.body).poll_frame(context)) {
            Some(Ok(frame)) => frame,
            ended => return Poll::Ready(ended),
        };
        let Some(piece) = frame.data_ref() else {
            return Poll::Ready(Some(Ok(frame)));
        };
        match this.position.advance(piece) {
            Err(TooLarge) => {
                let refusal = Refusal::too_large(this.position.largest);
                Poll::Ready(Some(Err(refusal.into())))
            }
            Ok(size) if size > SMALL && this.share.is_none() => {
                let (memory, caller) = (this.memory.clone(), this.caller);
                let wait = Box::pin(async move { memory.take(caller, size).await });
                this.waiting = frame.into_data().ok().map(|piece| (piece, wait as Wait));
                Pin::new(this).poll_frame(context)
            }
            Ok(_) => Poll::Ready(Some(Ok(frame))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(size: usize) -> Vec<u8> {
        let mut bytes = vec![0];
        bytes.extend_from_slice(&(size as u32).to_be_bytes());
        bytes.resize(PREFIX + size, 7);
        bytes
    }

    /// N3
    #[test]
    fn a_message_beyond_the_limit_is_refused_by_its_prefix() {
        let mut position = Position::new(10);
        assert_eq!(position.advance(&message(10)), Ok(0));
        assert_eq!(position.advance(&message(11)[..PREFIX]), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn messages_are_measured_however_they_are_cut(
            sizes in prop::collection::vec(0..20_usize, 1..10),
            cuts in prop::collection::vec(1..8_usize, 1..50),
        ) {
            let bytes: Vec<u8> = sizes.iter().flat_map(|size| message(*size)).collect();
            let mut position = Position::new(20);
            let (mut at, mut cuts) = (0, cuts.into_iter().cycle());
            while at < bytes.len() {
                let end = bytes.len().min(at + cuts.next().unwrap_or(1));
                let open = position.advance(&bytes[at..end]).expect("none is too large");
                at = end;
                // The message in which the cut lies, if its prefix is whole.
                let mut begin = 0;
                let mut expected = 0;
                for size in &sizes {
                    let next = begin + PREFIX + size;
                    if at >= begin + PREFIX && at < next {
                        expected = *size;
                    }
                    begin = next;
                }
                prop_assert_eq!(open, expected);
            }
        }
    }
}
