//! The listening sockets, whose connections form one stream.

use std::{
    io,
    net::SocketAddr,
    os::unix::net::UnixListener as StdListener,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{net::UnixListener, sync::mpsc, task::spawn_blocking};
use tokio_stream::wrappers::ReceiverStream;

use super::{
    connection::{Connection, ConnectionLimit},
    tcp::Tcp,
    tls::TlsError,
    token::TokenError,
};
use crate::{process::socket::PrivateSocket, service::Closing};

/// Maximum number of connections that wait to be served.
const BACKLOG: usize = 128;
/// The delay after a failed accept, for example when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(20);
/// The delays after a socket that could not be bound again.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(2);

/// The sender of new connections.
pub(super) type Sender = mpsc::Sender<io::Result<Connection>>;

/// New connections, as they are accepted.
pub(crate) type Connections = ReceiverStream<io::Result<Connection>>;

/// The reason why the server cannot listen.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("cannot listen on unix:{}: {source}", path.display())]
    Unix { path: PathBuf, source: io::Error },
    #[error("cannot listen on tcp:{address}: {source}")]
    Tcp {
        address: SocketAddr,
        source: io::Error,
    },
    /// The token would cross the network in the clear.
    #[error(
        "tcp:{address} is reachable from other machines and TLS is not configured: give --tls-cert FILE and --tls-key FILE, or listen on tcp:127.0.0.1:{}",
        address.port()
    )]
    Exposed { address: SocketAddr },
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// A Unix socket, and the file that leads to it.
type Bound = (PrivateSocket, UnixListener);

/// The listening sockets.
#[derive(Debug)]
pub(crate) struct Listener {
    unix: Vec<Bound>,
    tcp: Tcp,
}

impl Listener {
    /// Binds every path, in addition to the TCP sockets that are bound already.
    pub(crate) fn bind<'a>(
        paths: impl Iterator<Item = &'a Path>,
        tcp: Tcp,
    ) -> Result<Self, ListenError> {
        let bound = paths.map(|path| {
            let bound = PrivateSocket::bind(path).and_then(asynchronous);
            bound.map_err(|source| ListenError::Unix {
                path: path.to_owned(),
                source,
            })
        });
        Ok(Self {
            unix: bound.collect::<Result<_, _>>()?,
            tcp,
        })
    }

    /// Accepts connections until the server shuts down: those of gRPC clients, and those of HTTP clients.
    pub(crate) fn connections(self, closing: &Closing) -> (Connections, Connections) {
        let (sender, connections) = mpsc::channel(BACKLOG);
        let (http_sender, http_connections) = mpsc::channel(BACKLOG);
        let limit = ConnectionLimit::new();
        self.tcp.open(&sender, &http_sender, &limit, closing);
        for bound in self.unix {
            let (sender, limit) = (sender.clone(), limit.clone());
            let closing = closing.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = keep_listening(bound, &limit, &sender) => {}
                    () = closing.begun() => {}
                }
            });
        }
        let http_connections = ReceiverStream::new(http_connections);
        (ReceiverStream::new(connections), http_connections)
    }
}

/// Accepts connections, and binds the path again whenever its file is removed: the server would be out
/// of reach for good.
async fn keep_listening(mut bound: Bound, limit: &ConnectionLimit, sender: &Sender) {
    loop {
        let (socket, listener) = &bound;
        tokio::select! {
            biased;
            () = accept(listener, limit, sender) => return,
            () = socket.lost() => {}
        }
        let path = socket.path().to_owned();
        tracing::warn!(path = %path.display(), "the socket was removed; binding it again");
        bound = bind_again(path).await;
    }
}

/// Binds as soon as it is possible: the directory may be out of reach until the user logs in again.
async fn bind_again(path: PathBuf) -> Bound {
    let mut pause = FIRST_RETRY;
    loop {
        let again = path.clone();
        // It waits for a listener that another server may have there.
        let bound = spawn_blocking(move || PrivateSocket::bind(&again)).await;
        let bound = bound.unwrap_or_else(|error| Err(io::Error::other(error)));
        match bound.and_then(asynchronous) {
            Ok(bound) => return bound,
            Err(error) if pause == FIRST_RETRY => {
                tracing::warn!(path = %path.display(), %error, "cannot bind the socket; will retry");
            }
            Err(_) => {}
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LAST_RETRY);
    }
}

fn asynchronous((socket, listener): (PrivateSocket, StdListener)) -> io::Result<Bound> {
    Ok((socket, UnixListener::from_std(listener)?))
}

async fn accept(listener: &UnixListener, limit: &ConnectionLimit, sender: &Sender) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => match limit.local(stream) {
                Some(connection) => {
                    if sender.send(Ok(connection)).await.is_err() {
                        return;
                    }
                }
                None => refuse(),
            },
            Err(error) => pause(&error).await,
        }
    }
}

/// Notes a connection that is closed at once.
pub(super) fn refuse() {
    tracing::debug!("closed a new connection: its client has its share of the connections");
}

/// Waits after a connection that could not be accepted.
pub(crate) async fn pause(error: &io::Error) {
    tracing::warn!(%error, "could not accept a connection; will retry");
    tokio::time::sleep(PAUSE).await;
}
