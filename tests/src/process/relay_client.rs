//! A client of a task's relay, message by message. Every byte is written literally: see `heeler_shim::relay`.

use std::{
    io::{IoSlice, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsRawFd, BorrowedFd},
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixStream},
    },
};

use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::DEADLINE;

const VERSION: u8 = 2;
/// The length of a writer's id, padded with zeros.
const WRITER: usize = 48;

/// A connection to the shim of a task.
#[derive(Debug)]
pub struct RelayClient(UnixStream);

impl RelayClient {
    pub fn connect(task_uid: &str) -> Self {
        let name = format!("heeler/{}/relay", task_uid.replace('-', ""));
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let socket = UnixStream::connect_addr(&address).unwrap();
        socket.set_read_timeout(Some(DEADLINE)).unwrap();
        Self(socket)
    }

    /// Hands over stdin, stdout and stderr as the writer with this id.
    pub fn hand_over(&self, writer: &str, streams: [BorrowedFd<'_>; 3]) {
        let mut message = [0; 1 + WRITER];
        message[0] = VERSION;
        message[1..=writer.len()].copy_from_slice(writer.as_bytes());
        let descriptors = streams.map(|stream| stream.as_raw_fd());
        let rights = [ControlMessage::ScmRights(&descriptors)];
        let parts = [IoSlice::new(&message)];
        // The shim may have closed the connection.
        let flags = MsgFlags::MSG_NOSIGNAL;
        let _ = sendmsg::<()>(self.0.as_raw_fd(), &parts, &rights, flags, None);
    }

    /// Waits for the offset at which the relay begins or has ended; `None` if the shim has closed the connection.
    pub fn offset(&mut self) -> Option<u64> {
        let mut offset = [0; 8];
        self.0.read_exact(&mut offset).ok()?;
        Some(u64::from_le_bytes(offset))
    }

    /// Says that the output before the beginning is written.
    pub fn begin(&mut self) {
        self.0.write_all(&[VERSION]).unwrap();
    }

    /// Asks the shim to end the relay.
    pub fn leave(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }
}
