//! The transport: listeners, TLS, tokens, the limits on connections and calls, and the identity of a
//! caller. It knows the names of the RPCs ([`methods`]) and none of their messages.

mod call;
mod connection;
mod deadline;
mod layer;
mod listen;
mod message_stream;
mod meters;
mod methods;
mod origin;
mod pools;
mod request_body;
mod shares;
mod tcp;
mod tls;
mod token;
mod unauthenticated;

pub(crate) use call::Call;
pub(crate) use layer::{Admitted, Edge, Gate};
pub(crate) use listen::{ListenError, Listener, pause};
pub(crate) use meters::CallMeters;
pub(crate) use methods::{Effect, effect};
pub(crate) use request_body::{RequestMemory, TIME_LIMIT, collect, late};
pub(crate) use shares::Share;
pub(crate) use tcp::Tcp;
pub(crate) use token::{Purpose, Token, TokenError};
pub(crate) use unauthenticated::{Authentication, Unauthenticated};

use tonic::Request;

use crate::task::Actor;
use connection::{Client, Peer};

/// The caller as reported by the kernel, which knows nothing of a caller over TCP.
pub(super) fn caller<T>(request: &Request<T>) -> Actor {
    let client = request.extensions().get::<Client>();
    let cred = match client.map(|client| &client.peer) {
        Some(Peer::Local(info, _)) => info.peer_cred,
        Some(Peer::Remote(_)) | None => None,
    };
    Actor {
        name: None,
        uid: cred.map(|cred| cred.uid()),
        pid: cred.and_then(|cred| cred.pid()),
    }
}
