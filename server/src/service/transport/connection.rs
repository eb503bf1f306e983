//! A client's connection over any transport, and the identity of its peer.

use std::{
    future::Future,
    io,
    net::IpAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
    time::{Sleep, sleep},
};
use tokio_rustls::server::TlsStream;
use tonic::transport::server::{Connected, UdsConnectInfo};

use super::{
    origin::Origin,
    shares::{Caller, First, Share, Shares},
    unauthenticated::{Authentication, Guarded},
};
use crate::process::descriptor_limit;

/// Maximum number of connections: each is a descriptor, some buffers and, if the client does not read,
/// one answer. A client gets half at most; hosts use a handful.
const MAX_CONNECTIONS: usize = 4096;
/// The part of the descriptors that connections may use. The others are for tasks and files.
const DESCRIPTOR_PART: usize = 4;
/// The time that a client has to close a connection which the server has ended. Closed at once, it would
/// fail the client's next write, and some clients then drop an answer that they have not read yet.
const LAST_READ: Duration = Duration::from_secs(1);

/// A connection that carries calls.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    client: Client,
    /// The end of the wait for the client, since the server has ended the connection.
    last_read: Option<Pin<Box<Sleep>>>,
    /// Held, never read.
    _place: Share,
}

#[derive(Debug)]
pub(super) enum Stream {
    Unix(UnixStream),
    /// TCP without TLS.
    Tcp(Guarded<TcpStream>),
    /// TCP with TLS.
    Tls(Box<TlsStream<Guarded<TcpStream>>>),
}

/// The client at the other end of a connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    pub(super) peer: Peer,
    /// The caller that its calls are counted for.
    pub(super) caller: Caller,
}

/// The peer of a connection.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    /// A process that the kernel identifies.
    Local(UdsConnectInfo, Origin),
    /// A client that must present the token.
    Remote(Authentication),
}

/// The limit on connections of all sockets.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLimit {
    places: Shares,
    numbers: Arc<AtomicU64>,
}

impl ConnectionLimit {
    pub(super) fn new() -> Self {
        let descriptors = descriptor_limit().map_or(usize::MAX, |limit| limit as usize);
        let places = MAX_CONNECTIONS.min(descriptors / DESCRIPTOR_PART);
        Self {
            places: Shares::new(places, First::IfFree),
            numbers: Arc::default(),
        }
    }

    /// A connection to the Unix socket; `None` at the limit.
    pub(super) fn local(&self, stream: UnixStream) -> Option<Connection> {
        let info = stream.connect_info();
        let pid = info.peer_cred.and_then(|cred| cred.pid());
        // The kernel tells no pid of a process in another namespace.
        let caller = match pid {
            Some(pid) if pid > 0 => Caller::Process(pid),
            Some(_) | None => self.numbered(),
        };
        let place = self.places.try_take(caller, 1)?;
        let peer = Peer::Local(info, Origin::of(&stream));
        Some(Connection {
            stream: Stream::Unix(stream),
            client: Client { peer, caller },
            last_read: None,
            _place: place,
        })
    }

    /// A place for a connection from another machine, or over its loopback; `None` at the limit.
    pub(super) fn place(&self, machine: IpAddr) -> Option<Share> {
        self.places.try_take(Caller::Machine(machine), 1)
    }

    /// A connection over TCP.
    pub(super) fn remote(&self, stream: Stream, peer: Peer, place: Share) -> Connection {
        let caller = self.numbered();
        Connection {
            stream,
            client: Client { peer, caller },
            last_read: None,
            _place: place,
        }
    }

    fn numbered(&self) -> Caller {
        Caller::Connection(self.numbers.fetch_add(1, Ordering::Relaxed))
    }
}

impl Connected for Connection {
    type ConnectInfo = Client;

    fn connect_info(&self) -> Client {
        self.client.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Stream::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
            Stream::Tls(stream) => Pin::new(stream).poll_write_vectored(context, pieces),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.stream {
            Stream::Unix(stream) => stream.is_write_vectored(),
            Stream::Tcp(stream) => stream.is_write_vectored(),
            Stream::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().stream {
            Stream::Unix(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    /// Ends the server's side, then waits for the client to end its own.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(match &mut self.stream {
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        })?;
        let mut space = [0; 4096];
        loop {
            let limit = self
                .last_read
                .get_or_insert_with(|| Box::pin(sleep(LAST_READ)));
            if limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            let mut buffer = ReadBuf::new(&mut space);
            let read = ready!(self.as_mut().poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
    }
}
