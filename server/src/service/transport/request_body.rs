//! The body of a request, read before the call gets a place: a client that sends none keeps no other
//! client waiting.

use std::{sync::Arc, time::Duration};

use heeler_proto::v1::ErrorReason;
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use prost::bytes::{Bytes, BytesMut};
use tokio::time::timeout;
use tonic::{Code, Status, body::Body};

use super::shares::{Caller, Share, Shares};
use crate::service::wire::refusal::Refusal;

/// The time in which a request must arrive. The largest one takes a second over a slow network.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(10);
/// The flag and the length in front of a message.
pub(super) const PREFIX: usize = 5;
/// A request of this size takes no memory of its client's share: most requests are much smaller, and
/// the number of streams bounds them.
pub(super) const SMALL: usize = 4 << 10;

/// The memory of a request that has arrived. In the extensions of a call it says that the call takes no other:
/// a request that took memory twice would wait for its own kind.
#[derive(Debug, Clone)]
pub(crate) struct RequestMemory {
    /// Held, never read.
    _share: Arc<Share>,
}

impl RequestMemory {
    pub(crate) fn new(share: Share) -> Self {
        Self {
            _share: Arc::new(share),
        }
    }
}

/// Reads a request of one message. The memory is what it has already, or else takes.
pub(super) async fn read(
    body: Body,
    caller: Caller,
    memory: &Shares,
    held: Option<RequestMemory>,
    largest: usize,
) -> Result<(Body, Option<RequestMemory>), Status> {
    let read = timeout(TIME_LIMIT, read_all(body, caller, memory, held, largest)).await;
    read.unwrap_or_else(|_| Err(late().into()))
}

/// Reads a request without a prefix, such as JSON. The share is the memory that it takes.
pub(super) async fn read_plain(
    body: Body,
    caller: Caller,
    memory: &Shares,
    largest: usize,
) -> Result<(Bytes, Option<Share>), Status> {
    let reading = read_bytes(body, Some((caller, memory)), largest);
    let read = timeout(TIME_LIMIT, reading).await;
    read.unwrap_or_else(|_| Err(late().into()))
}

/// Reads a request without a prefix. Its memory is not counted.
pub(crate) async fn collect(body: Body, largest: usize) -> Result<Bytes, Status> {
    let read = timeout(TIME_LIMIT, read_bytes(body, None, largest)).await;
    read.unwrap_or_else(|_| Err(late().into()))
        .map(|(bytes, _)| bytes)
}

async fn read_bytes(
    mut body: Body,
    memory: Option<(Caller, &Shares)>,
    largest: usize,
) -> Result<(Bytes, Option<Share>), Status> {
    let length = body.size_hint().exact().map(|length| length as usize);
    if length.is_some_and(|length| length > largest) {
        return Err(Refusal::too_large(largest).into());
    }
    let mut bytes = BytesMut::new();
    let mut share = None;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        if bytes.len() + piece.len() > largest {
            return Err(Refusal::too_large(largest).into());
        }
        bytes.extend_from_slice(&piece);
        if let (true, None, Some((caller, memory))) = (bytes.len() > SMALL, &share, memory) {
            // All that may come at once: two requests that have a half each would wait for each other.
            share = Some(memory.take(caller, length.unwrap_or(largest)).await);
        }
    }
    if let Some(share) = &mut share {
        share.resize(bytes.len());
    }
    Ok((bytes.freeze(), share))
}

/// The refusal of a request that did not arrive in time.
pub(crate) fn late() -> Refusal {
    let message = format!("the request did not arrive within {TIME_LIMIT:?}");
    let reason = ErrorReason::RequestUnreadable;
    Refusal::new(Code::DeadlineExceeded, reason, message)
}

async fn read_all(
    mut body: Body,
    caller: Caller,
    memory: &Shares,
    mut held: Option<RequestMemory>,
    largest: usize,
) -> Result<(Body, Option<RequestMemory>), Status> {
    let mut message = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else {
            continue;
        };
        message.extend_from_slice(&piece);
        let size = announced(&message).max(message.len());
        if size > largest + PREFIX {
            return Err(Refusal::too_large(largest).into());
        }
        // Every request is one message, and its share is taken by the announced size.
        if message.len() > size_limit(&message) {
            let text = "the request is longer than its prefix says";
            let reason = ErrorReason::RequestUnreadable;
            return Err(Refusal::new(Code::InvalidArgument, reason, text.to_owned()).into());
        }
        if size > SMALL && held.is_none() {
            // All of it at once: two requests that have a half each would wait for each other.
            held = Some(RequestMemory::new(memory.take(caller, size).await));
        }
    }
    Ok((Body::new(Full::new(message.freeze())), held))
}

/// The most bytes that the request may have, by its prefix.
fn size_limit(message: &[u8]) -> usize {
    announced(message).max(PREFIX)
}

/// The size of the message with its prefix, as the prefix says; 0 if that is not there yet.
fn announced(message: &[u8]) -> usize {
    match message.first_chunk::<PREFIX>() {
        Some([_, length @ ..]) => u32::from_be_bytes(*length) as usize + PREFIX,
        None => 0,
    }
}
