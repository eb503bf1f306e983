//! The listening sockets, whose connections form one stream.

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

/// Maximum number of connections that wait to be served.
const BACKLOG: usize = 128;
/// The delay after a failed accept, for example when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(20);

/// The sender of new connections.
pub(super) type Connections = mpsc::Sender<io::Result<Connection>>;

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

/// The listening sockets.
#[derive(Debug)]
pub(crate) struct Listener {
    unix: Vec<(PrivateSocket, UnixListener)>,
    tcp: Tcp,
}

impl Listener {
    /// Binds every path, in addition to the TCP sockets that are bound already.
    pub(crate) fn bind<'a>(
        paths: impl Iterator<Item = &'a Path>,
        tcp: Tcp,
    ) -> Result<Self, ListenError> {
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

    /// Accepts connections until the server shuts down.
    pub(crate) fn connections(self, closing: &Closing) -> ReceiverStream<io::Result<Connection>> {
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

/// Waits after a connection that could not be accepted.
pub(super) async fn pause(error: &io::Error) {
    tracing::warn!(%error, "could not accept a connection; will retry");
    tokio::time::sleep(PAUSE).await;
}
