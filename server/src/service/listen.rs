//! Where clients come in: every listening socket's connections, as one stream.

use std::{io, path::PathBuf, time::Duration};

use tokio::{
    net::{UnixListener, UnixStream},
    sync::mpsc,
};
use tokio_stream::wrappers::ReceiverStream;

use super::Closing;
use crate::process::socket::PrivateSocket;

/// Connections that wait to be served.
const BACKLOG: usize = 128;
/// How long to wait when the system has no descriptor left for a new connection.
const PAUSE: Duration = Duration::from_millis(20);

/// Why nobody can come in.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on unix:{}: {source}", path.display())]
pub struct ListenError {
    /// Where.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// The sockets that are listened on.
#[derive(Debug)]
pub struct Listener {
    sockets: Vec<(PrivateSocket, UnixListener)>,
}

impl Listener {
    /// Binds every path.
    pub fn bind(paths: &[PathBuf]) -> Result<Self, ListenError> {
        let bind = |path: &PathBuf| {
            let (socket, listener) = PrivateSocket::bind(path)?;
            Ok((socket, UnixListener::from_std(listener)?))
        };
        let bound = paths.iter().map(|path| {
            bind(path).map_err(|source| ListenError {
                path: path.clone(),
                source,
            })
        });
        Ok(Self {
            sockets: bound.collect::<Result<_, _>>()?,
        })
    }

    /// What comes in, until the server closes.
    pub fn connections(self, closing: &Closing) -> ReceiverStream<io::Result<UnixStream>> {
        let (sender, connections) = mpsc::channel(BACKLOG);
        for (socket, listener) in self.sockets {
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

async fn accept(listener: &UnixListener, sender: mpsc::Sender<io::Result<UnixStream>>) {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => {
                if sender.send(Ok(connection)).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
