//! The server's end of a shim's socket.

use std::{
    io,
    os::{fd::AsRawFd, unix::net::UnixStream as StdStream},
    time::Duration,
};

use heeler_shim::wire::{MESSAGE, MessageBytes, UnknownMessage, VERSION, socket_name};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};
use tokio::{io::AsyncWriteExt, net::UnixStream, time::Instant};

use super::{ShimOrder, ShimProcess, ShimReport};
use crate::{process::own_uid, task::TaskUid};

/// The time and the interval of attempts to connect to a shim whose backlog is full. It takes
/// connections every 50 ms at least.
const CONNECT_WITHIN: Duration = Duration::from_millis(200);
const CONNECT_EVERY: Duration = Duration::from_millis(1);

/// A connection to one shim: the only descriptor that the server has for a task.
#[derive(Debug)]
pub struct ShimLink {
    stream: UnixStream,
    /// The shim's process, if this server has started it.
    process: Option<ShimProcess>,
    partial: MessageBytes,
    filled: usize,
}

impl ShimLink {
    /// Wraps the connected, non-blocking socket of a shim that this server has started.
    pub(super) fn to_started(stream: StdStream, process: Option<ShimProcess>) -> io::Result<Self> {
        let link = Self::new(stream)?;
        Ok(Self { process, ..link })
    }

    fn new(stream: StdStream) -> io::Result<Self> {
        let stream = UnixStream::from_std(stream)?;
        Ok(Self {
            stream,
            process: None,
            partial: [0; MESSAGE],
            filled: 0,
        })
    }

    /// The shim's process, if this server has started it.
    pub(crate) fn process(&self) -> Option<ShimProcess> {
        self.process
    }

    /// Connects to a shim that an earlier server has started. Other users may fill its backlog for
    /// moments, so a full one is tried again for a while.
    pub async fn connect(uid: TaskUid) -> io::Result<Self> {
        let until = Instant::now() + CONNECT_WITHIN;
        loop {
            match Self::try_connect(uid) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    tokio::time::sleep(CONNECT_EVERY).await;
                }
                result => return result,
            }
        }
    }

    fn try_connect(uid: TaskUid) -> io::Result<Self> {
        // A stopped shim accepts no connection, and must not block its server.
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
        let address = UnixAddr::new_abstract(&socket_name(uid.as_bytes()))?;
        connect(socket.as_raw_fd(), &address)?;
        let link = Self::new(StdStream::from(socket))?;
        // Every user may bind any abstract name.
        if link.stream.peer_cred()?.uid() != own_uid() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the socket belongs to another user",
            ));
        }
        Ok(link)
    }

    /// Returns the next report; `None` when the shim is gone or speaks another version of the protocol.
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<ShimReport> {
        loop {
            if self.filled == MESSAGE {
                self.filled = 0;
                match ShimReport::decode(&self.partial) {
                    Ok(report) => return Some(report),
                    Err(UnknownMessage::Kind(kind)) => {
                        tracing::debug!(kind, "skipped a shim's message of an unknown kind");
                        continue;
                    }
                    Err(UnknownMessage::Version(version)) => {
                        tracing::error!(
                            version,
                            expected = VERSION,
                            "closed the link to a shim: it speaks an unknown protocol version"
                        );
                        return None;
                    }
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

    /// Sends an order. After a failure, or when the future was dropped, the link must not be used again.
    pub async fn send(&mut self, order: ShimOrder) -> io::Result<()> {
        self.send_bytes(&order.encode()).await
    }

    /// Sends orders with the bytes behind them, as [`Self::send`].
    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Returns whether no message was received in part.
    pub(super) fn is_between_messages(&self) -> bool {
        self.filled == 0
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::Write;

    use super::*;

    /// R8
    #[tokio::test]
    async fn a_shim_of_another_protocol_version_is_refused_and_an_unknown_kind_is_skipped() {
        let (ours, mut shim) = StdStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut link = ShimLink::new(ours).unwrap();
        let mut message = ShimReport::Started.encode();
        message[0] = b'?';
        shim.write_all(&message).unwrap();
        shim.write_all(&ShimReport::LeaderExited.encode()).unwrap();
        assert_eq!(link.next().await, Some(ShimReport::LeaderExited));
        let mut message = ShimReport::Started.encode();
        message[1] = VERSION + 1;
        shim.write_all(&message).unwrap();
        shim.write_all(&ShimReport::LeaderExited.encode()).unwrap();
        assert_eq!(link.next().await, None);
    }
}
