//! A relay: a client hands the shim its own stdin, stdout and stderr, and its bytes pass no server.
//!
//! The client that is the writer of a task's input connects to the abstract socket [`relay_name`]. Both must run as the
//! same user. The shim knows the id of the writer from the server, and takes the streams of no other client.
//!
//! | from | message |
//! | --- | --- |
//! | client | a [`FirstMessage`], with three descriptors: pipes, or stream sockets |
//! | shim | the offset of the first byte of output that it will write there, as 8 bytes in little-endian order. It reads no output for [`ANSWER_MILLIS`] |
//! | client | [`VERSION`], once it has written the output before that offset itself |
//! | shim | the offset of the first byte of output that it has not written there. Then it closes the connection |
//!
//! Output is in the task file as ever. The relay ends with the leader, when a writer takes the input, when the
//! client closes the connection, and when the task has waited too long for the client's pipe: see [`BLOCKED_MILLIS`].

use crate::wire::{WRITER, socket_name};

/// The version of this protocol.
pub const VERSION: u8 = 2;

/// The time that the other end has for each message.
pub const ANSWER_MILLIS: u64 = 1000;
/// The time for which a task waits for a client that does not read, in all. A tenth of the time in which it does not
/// wait is added again.
pub const BLOCKED_MILLIS: u64 = 500;
/// The part of each wait that does not count: a client that reads empties its pipe in less.
pub const SHORT_MILLIS: u64 = 10;

/// The client's first message: [`VERSION`], and the id of its writer, filled with zeros.
pub type FirstMessage = [u8; 1 + WRITER];

/// Returns the first message of a writer; `None` if its id is too long.
pub fn first_message(writer_id: &str) -> Option<FirstMessage> {
    let mut message = [0; 1 + WRITER];
    message[0] = VERSION;
    let place = message.get_mut(1..1 + writer_id.len())?;
    place.copy_from_slice(writer_id.as_bytes());
    Some(message)
}

/// Returns the abstract name of a task's relay, without the leading NUL.
pub fn relay_name(task_uid: &[u8; 16]) -> [u8; 45] {
    let mut name = *b"heeler/00000000000000000000000000000000/relay";
    name[..39].copy_from_slice(&socket_name(task_uid));
    name
}
