//! Connections that have not presented the token yet: a bounded number, for a bounded time.
//!
//! Any process can open a connection and send nothing, half a handshake or garbage. When the limit is
//! reached, the oldest unauthenticated connection is closed for a new one. A client that knows the token
//! authenticates within milliseconds, however many others are waiting.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::oneshot,
    time::{Sleep, sleep},
};
use tonic::transport::server::Connected;

/// Maximum number of unauthenticated connections: each is a descriptor and perhaps a handshake.
const MAX_CONNECTIONS: usize = 256;
/// Time in which a connection must authenticate.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The state of a connection: authenticated or not. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Authentication(Arc<AtomicBool>);

impl Authentication {
    pub(crate) fn succeed(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn has_succeeded(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The unauthenticated connections of all TCP sockets.
#[derive(Debug, Clone)]
pub(crate) struct Unauthenticated {
    connections: Arc<Mutex<VecDeque<Entry>>>,
    time_limit: Duration,
}

impl Default for Unauthenticated {
    fn default() -> Self {
        Self {
            connections: Arc::default(),
            time_limit: TIME_LIMIT,
        }
    }
}

#[derive(Debug)]
struct Entry {
    authentication: Authentication,
    close: oneshot::Sender<()>,
}

impl Entry {
    fn is_waiting(&self) -> bool {
        !self.authentication.has_succeeded() && !self.close.is_closed()
    }
}

impl Unauthenticated {
    /// Adds a connection. At the limit, the oldest unauthenticated one is closed.
    pub(crate) fn admit<S>(&self, stream: S) -> Guarded<S> {
        let authentication = Authentication::default();
        let (close, closed) = oneshot::channel();
        let mut connections = self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if connections.len() >= MAX_CONNECTIONS {
            connections.retain(Entry::is_waiting);
        }
        if connections.len() >= MAX_CONNECTIONS
            && let Some(oldest) = connections.pop_front()
        {
            // It may have ended already.
            let _ = oldest.close.send(());
        }
        connections.push_back(Entry {
            authentication: authentication.clone(),
            close,
        });
        Guarded {
            stream,
            authentication,
            stage: Stage::Unauthenticated {
                closed,
                timer: Box::pin(sleep(self.time_limit)),
            },
        }
    }
}

/// A connection that is closed unless it authenticates in time.
#[derive(Debug)]
pub(crate) struct Guarded<S> {
    stream: S,
    authentication: Authentication,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Unauthenticated {
        closed: oneshot::Receiver<()>,
        timer: Pin<Box<Sleep>>,
    },
    Authenticated,
    Closed,
}

impl<S> Guarded<S> {
    /// The state to be set by the layer that reads the calls.
    pub(super) fn authentication(&self) -> Authentication {
        self.authentication.clone()
    }

    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if let Stage::Unauthenticated { closed, timer } = &mut self.stage {
            if self.authentication.has_succeeded() {
                self.stage = Stage::Authenticated;
            } else if Pin::new(closed).poll(context).is_ready()
                || timer.as_mut().poll(context).is_ready()
            {
                self.stage = Stage::Closed;
            }
        }
        match self.stage {
            Stage::Unauthenticated { .. } | Stage::Authenticated => Ok(()),
            Stage::Closed => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the connection did not authenticate in time",
            )),
        }
    }
}

impl<S> Connected for Guarded<S> {
    type ConnectInfo = Authentication;

    fn connect_info(&self) -> Authentication {
        self.authentication()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.check(context)?;
        Pin::new(&mut this.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    use super::*;

    fn without_time() -> Unauthenticated {
        Unauthenticated {
            time_limit: Duration::ZERO,
            ..Unauthenticated::default()
        }
    }

    fn connect(all: &Unauthenticated) -> (Guarded<DuplexStream>, DuplexStream) {
        let (ours, theirs) = duplex(16);
        (all.admit(ours), theirs)
    }

    /// N3
    #[tokio::test]
    async fn a_connection_that_does_not_authenticate_is_closed() {
        let (mut connection, _theirs) = connect(&without_time());
        let error = connection.read_u8().await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(connection.read_u8().await.is_err(), "and stays closed");
    }

    /// N3
    #[tokio::test]
    async fn an_authenticated_connection_stays_open() {
        let (mut connection, mut theirs) = connect(&without_time());
        connection.authentication().succeed();
        theirs.write_u8(7).await.unwrap();
        assert_eq!(connection.read_u8().await.unwrap(), 7);
    }

    /// N3
    #[tokio::test]
    async fn at_the_limit_the_oldest_unauthenticated_connection_is_closed() {
        let all = Unauthenticated::default();
        let (mut known, mut known_peer) = connect(&all);
        known.authentication().succeed();
        let mut waiting: Vec<_> = (0..MAX_CONNECTIONS).map(|_| connect(&all)).collect();
        known_peer.write_u8(1).await.unwrap();
        assert_eq!(known.read_u8().await.unwrap(), 1, "it no longer counts");
        let (mut next, mut next_peer) = connect(&all);
        assert!(
            waiting[0].0.read_u8().await.is_err(),
            "the oldest is closed"
        );
        waiting[1].1.write_u8(2).await.unwrap();
        assert_eq!(waiting[1].0.read_u8().await.unwrap(), 2, "no other is");
        next_peer.write_u8(3).await.unwrap();
        assert_eq!(next.read_u8().await.unwrap(), 3);
    }
}
