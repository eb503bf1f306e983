//! Where clients come in: every listening socket's connections, as one stream.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{net::UnixListener, sync::mpsc};
use tokio_stream::wrappers::ReceiverStream;

use super::{connection::Connection, tcp::Tcp, tls::TlsError, token::TokenError};
use crate::{process::socket::PrivateSocket, service::Closing};

/// Connections that wait to be served.
const BACKLOG: usize = 128;
/// How long to wait when the system has no descriptor left for a new connection.
const PAUSE: Duration = Duration::from_millis(20);

/// Where connections go that are to be served.
pub(super) type Connections = mpsc::Sender<io::Result<Connection>>;

/// Why nobody can come in.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A Unix socket could not be had.
    #[error("cannot listen on unix:{}: {source}", path.display())]
    Unix {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A TCP socket could not be had.
    #[error("cannot listen on tcp:{address}: {source}")]
    Tcp {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// Others could read the token on its way.
    #[error(
        "tcp:{address} can be reached from other machines, and there is no TLS: give --tls-cert FILE and --tls-key FILE, or listen on tcp:127.0.0.1:{}",
        address.port()
    )]
    Exposed {
        /// Where.
        address: SocketAddr,
    },
    /// There can be no TLS.
    #[error("no TLS: {0}")]
    Tls(#[from] TlsError),
    /// There can be no token.
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// The sockets that are listened on.
#[derive(Debug)]
pub struct Listener {
    unix: Vec<(PrivateSocket, UnixListener)>,
    tcp: Tcp,
}

impl Listener {
    /// Binds every path, beside what is bound already.
    pub fn bind<'a>(paths: impl Iterator<Item = &'a Path>, tcp: Tcp) -> Result<Self, ListenError> {
        let bind = |path: &Path| {
            let (socket, listener) = PrivateSocket::bind(path)?;
            Ok((socket, UnixListener::from_std(listener)?))
        };
        let bound = paths.map(|path| {
            bind(path).map_err(|source| ListenError::Unix {
                path: path.to_owned(),
                source,
            })
        });
        Ok(Self {
            unix: bound.collect::<Result<_, _>>()?,
            tcp,
        })
    }

    /// What comes in, until the server closes.
    pub fn connections(self, closing: &Closing) -> ReceiverStream<io::Result<Connection>> {
        let (sender, connections) = mpsc::channel(BACKLOG);
        self.tcp.open(&sender, closing);
        for (socket, listener) in self.unix {
            let (sender, closing) = (sender.clone(), closing.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = accept(&listener, sender) => {}
                    () = closing.begun() => {}
                }
                drop(socket);
            });
        }
        ReceiverStream::new(connections)
    }
}

async fn accept(listener: &UnixListener, sender: Connections) {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                if sender.send(Ok(Connection::Unix(connection))).await.is_err() {
                    return;
                }
            }
            Err(error) => pause(&error).await,
        }
    }
}

/// Between a connection that could not be accepted and the next.
pub(super) async fn pause(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(PAUSE).await;
}
