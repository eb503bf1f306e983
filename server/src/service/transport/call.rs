//! A call in progress: its place among the calls, and the memory of its answer.
//!
//! An answer that its client does not read stays in memory. So every answer is counted, from before it
//! is made until its bytes are sent or dropped, and a client with too many unread ones waits.

use std::{
    future::ready,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use http::{Extensions, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use prost::bytes::Bytes;
use tonic::{Status, body::Body};

use super::shares::{Caller, First, Share, Shares};
use crate::supervisor::SearchKey;

/// The memory that a short answer is expected to need.
const SHORT_ANSWER: usize = 4 << 10;

/// One call. Its clones are the same call; a stream keeps one until it ends.
#[derive(Debug, Clone)]
pub(crate) struct Call(Arc<Held>);

#[derive(Debug)]
struct Held {
    caller: Caller,
    memory: Shares,
    shares: Mutex<CallShares>,
}

#[derive(Debug)]
struct CallShares {
    place: Option<Share>,
    answer: Option<Share>,
}

impl Call {
    pub(super) fn new(caller: Caller, memory: Shares, place: Share) -> Self {
        Self(Arc::new(Held {
            caller,
            memory,
            shares: Mutex::new(CallShares {
                place: Some(place),
                answer: None,
            }),
        }))
    }

    /// A call of the server itself, with so much memory for what it has not taken.
    pub(crate) fn own(memory: usize) -> Self {
        let caller = Caller::Process(std::process::id() as i32);
        let memory = Shares::new(memory, First::Granted);
        let place = memory.take_regardless(caller, 0);
        Self::new(caller, memory, place)
    }

    /// The call that a request belongs to.
    pub(crate) fn of(extensions: &Extensions) -> Result<Self, Status> {
        let call = extensions.get::<Self>().cloned();
        call.ok_or_else(|| Status::internal("the call came without its place"))
    }

    /// The party that searches of this call are done for.
    pub(crate) fn search_key(&self) -> SearchKey {
        let mut hasher = DefaultHasher::new();
        self.0.caller.hash(&mut hasher);
        SearchKey::Client(hasher.finish())
    }

    /// Waits until the client may have a short answer.
    pub(super) async fn reserve_short(&self) {
        self.reserve(SHORT_ANSWER).await;
    }

    /// Waits until the client may have an answer of this size. To be called before the answer is made,
    /// and after everything that the call waits for: until then it has no memory.
    pub(crate) async fn reserve(&self, bytes: usize) {
        // Nothing is held during the wait: answers that wait for one another would never be sent.
        self.shares().answer = None;
        let share = self.0.memory.take(self.0.caller, bytes).await;
        self.shares().answer = Some(share);
    }

    /// Counts the bytes that a stream has made and not sent. Returns whether it may make as many again;
    /// if not, the client reads too slowly and gets them in small pieces.
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let held = &*self.0;
        let answer = &mut self.shares().answer;
        let share = answer.get_or_insert_with(|| held.memory.take_regardless(held.caller, 0));
        share.resize(bytes)
    }

    /// Changes to another pool of calls. `None` keeps the old place.
    pub(super) fn move_to(&self, place: Option<Share>) {
        if place.is_some() {
            self.shares().place = place;
        }
    }

    /// Gives the place back, encodes the answer, and counts its bytes until they are sent or dropped.
    pub(super) async fn complete(self, response: Response<Body>) -> Response<Body> {
        self.shares().place = None;
        if response.body().is_end_stream() {
            return response;
        }
        let (mut parts, body) = response.into_parts();
        let encoded = match body.collect().await {
            Ok(encoded) => encoded,
            Err(status) => return status.into_http(),
        };
        let trailers = encoded.trailers().cloned();
        let bytes = encoded.to_bytes();
        self.hold(bytes.len());
        // For a layer that makes another, perhaps larger, form of the answer.
        parts.extensions.insert(self.clone());
        let body = Full::new(self.counted(bytes)).with_trailers(ready(trailers.map(Ok)));
        Response::from_parts(parts, Body::new(body))
    }

    /// The bytes of the answer, which count until they are sent or dropped.
    pub(crate) fn counted(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Counted { bytes, _call: self })
    }

    /// A piece of a stream in another form, which counts by itself until it is sent or dropped.
    pub(crate) fn counted_piece(&self, bytes: Bytes) -> Bytes {
        let share = self.0.memory.take_regardless(self.0.caller, bytes.len());
        Bytes::from_owner(Piece {
            bytes,
            _share: share,
        })
    }

    /// No code that can panic runs under the lock.
    fn shares(&self) -> MutexGuard<'_, CallShares> {
        self.0.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The bytes of an answer, and the call whose memory they are.
struct Counted {
    bytes: Bytes,
    _call: Call,
}

/// The bytes of a piece, and their memory.
struct Piece {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
