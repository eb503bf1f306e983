//! The server's end of a shim's socket.

use std::{
    io,
    os::{fd::AsRawFd, unix::net::UnixStream as StdStream},
};

use heeler_shim::wire::{MESSAGE, MessageBytes, Order, Report, socket_name};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use tokio::{io::AsyncWriteExt, net::UnixStream};

use super::own_uid;
use crate::task::TaskUid;

/// A connection to one shim: the only descriptor that the server has for a task.
#[derive(Debug)]
pub struct Link {
    stream: UnixStream,
    partial: MessageBytes,
    filled: usize,
}

impl Link {
    /// Over a socket that is connected already, and not blocking.
    pub(super) fn new(stream: StdStream) -> io::Result<Self> {
        let stream = UnixStream::from_std(stream)?;
        Ok(Self {
            stream,
            partial: [0; MESSAGE],
            filled: 0,
        })
    }

    /// To a shim that an earlier server has started.
    pub fn connect(uid: TaskUid) -> io::Result<Self> {
        // A shim that is stopped lets nobody in, and must not hold up whoever knocks.
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        let address = UnixAddr::new_abstract(&socket_name(uid.as_bytes()))?;
        connect(socket.as_raw_fd(), &address)?;
        let link = Self::new(StdStream::from(socket))?;
        // Anybody may take an abstract name; only our own shims are believed.
        if link.stream.peer_cred()?.uid() != own_uid() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "another user's socket",
            ));
        }
        Ok(link)
    }

    /// The next report; `None` when the shim is gone. Cancelling the future loses nothing.
    pub async fn next(&mut self) -> Option<Report> {
        loop {
            if self.filled == MESSAGE {
                self.filled = 0;
                match Report::decode(&self.partial) {
                    Some(report) => return Some(report),
                    None => continue,
                }
            }
            self.stream.readable().await.ok()?;
            match self.stream.try_read(&mut self.partial[self.filled..]) {
                Ok(0) => return None,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Tells the shim to do something. A link on which this failed, or was given up, is of no more
    /// use.
    pub async fn send(&mut self, order: Order) -> io::Result<()> {
        self.send_bytes(&order.encode()).await
    }

    /// The same, for an order with something behind it.
    pub(super) async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Whether everything that has come so far was whole messages.
    pub(super) fn is_between_messages(&self) -> bool {
        self.filled == 0
    }
}
