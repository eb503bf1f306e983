//! A relay: a client hands the shim its own stdin, stdout and stderr, and its bytes pass no server.
//!
//! A client that has the input of a task connects to the abstract socket [`relay_name`]. Both must run as the same user.
//!
//! | from | message |
//! | --- | --- |
//! | client | [`VERSION`], with three descriptors: pipes that do not block, or stream sockets |
//! | shim | the offset of the first byte of output that it will write there, as 8 bytes in little-endian order. It reads no output for [`ANSWER_MILLIS`] |
//! | client | [`VERSION`], once it has written the output before that offset itself |
//! | shim | the offset of the first byte of output that it has not written there. Then it closes the connection |
//!
//! Output is in the task file as ever. The relay ends with the leader, when another writer takes the input, when the
//! client closes the connection, and when the client's pipe takes no output for [`BLOCKED_MILLIS`]: then the task would
//! have to wait.

use crate::wire::socket_name;

/// The version of this protocol.
pub const VERSION: u8 = 1;

/// The time that the other end has for each message.
pub const ANSWER_MILLIS: u64 = 1000;
/// The time for which a task waits for a client that does not read.
pub const BLOCKED_MILLIS: u64 = 500;

/// Returns the abstract name of a task's relay, without the leading NUL.
pub fn relay_name(task_uid: &[u8; 16]) -> [u8; 45] {
    let mut name = *b"heeler/00000000000000000000000000000000/relay";
    name[..39].copy_from_slice(&socket_name(task_uid));
    name
}
