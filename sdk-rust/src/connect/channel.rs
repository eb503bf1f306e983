//! The channel: HTTP/2 over a Unix socket whose peer is trusted, or over TCP.

use std::{io, path::Path, time::Duration};

use hyper_util::rt::TokioIo;
use nix::unistd::{Uid, geteuid};
use tokio::{
    io::{AsyncRead, AsyncWrite, BufWriter},
    net::{TcpStream, UnixStream, lookup_host},
    time,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::{
    ConnectOptions,
    address::{Address, Host, Place},
};
use crate::error::{ConnectFailure, Error, connect_failure, same};

/// The delay when the daemon's backlog is full, which the kernel reports at once.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);
/// About five seconds in all.
const QUEUE_FULL_TRIES: usize = 1000;
/// Maximum time to connect, including the handshake.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// The interval of pings to a silent peer while calls are open.
const ASK_EVERY: Duration = Duration::from_secs(30);
/// Maximum time for the answer to a ping.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// Connects now, and reconnects whenever the connection breaks.
pub(crate) async fn channel(address: &Address, options: &ConnectOptions) -> Result<Channel, Error> {
    // HTTP/2 requires an authority; the connectors ignore it.
    let endpoint = Endpoint::from_static("http://localhost");
    match address.place() {
        Place::Unix(path) => {
            let path = path.clone();
            over(endpoint, address, move || {
                let path = path.clone();
                // Buffered, so that the preface and the settings are one write.
                async move { Ok(BufWriter::new(open_unix(&path).await?)) }
            })
            .await
        }
        Place::Tcp(host) => {
            let host = host.clone();
            over(watchful(endpoint), address, move || {
                let host = host.clone();
                async move {
                    Ok(BufWriter::new(
                        limited(open_tcp(&host, Reach::Loopback)).await?,
                    ))
                }
            })
            .await
        }
        Place::Tls(host) => {
            let (host, tls) = (host.clone(), options.tls()?);
            over(watchful(endpoint), address, move || {
                let (host, tls) = (host.clone(), tls.clone());
                async move { limited(open_tls(&host, &tls)).await }
            })
            .await
        }
    }
}

/// Detects a peer that disappeared without closing the connection.
fn watchful(endpoint: Endpoint) -> Endpoint {
    endpoint
        .http2_keep_alive_interval(ASK_EVERY)
        .keep_alive_timeout(ANSWER_LIMIT)
}

async fn over<S, F>(
    endpoint: Endpoint,
    address: &Address,
    open: impl Fn() -> F + Send + 'static,
) -> Result<Channel, Error>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Future<Output = io::Result<S>> + Send + 'static,
{
    let connector = service_fn(move |_: Uri| {
        let opened = open();
        async move { opened.await.map(TokioIo::new).map_err(ConnectFailure) }
    });
    let connected = endpoint.connect_with_connector(connector).await;
    connected.map_err(|error| {
        // The handshake of HTTP/2 comes after the connector.
        let source = connect_failure(&error).unwrap_or_else(|| io::Error::other(error));
        Error::from_connect(source, address)
    })
}

async fn open_unix(path: &Path) -> io::Result<UnixStream> {
    let mut tries = QUEUE_FULL_TRIES;
    loop {
        match UnixStream::connect(path).await {
            Ok(stream) => {
                check_peer(Uid::from_raw(stream.peer_cred()?.uid()))?;
                return Ok(stream);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && tries > 0 => {
                tries -= 1;
                time::sleep(QUEUE_FULL_PAUSE).await;
            }
            Err(error) => return Err(same(&error)),
        }
    }
}

/// Requests may contain secrets: only a daemon of this user or of root may receive them. Root may talk to
/// any daemon.
fn check_peer(peer: Uid) -> io::Result<()> {
    let own = geteuid();
    if peer == own || peer.is_root() || own.is_root() {
        return Ok(());
    }
    let text = format!("the process that listens there runs as user {peer}, not as user {own}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// The hosts that a connection may go to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// Loopback addresses only, whatever the name resolves to.
    Loopback,
    Anywhere,
}

async fn open_tcp(host: &Host, reach: Reach) -> io::Result<TcpStream> {
    let mut failed = io::Error::other(format!("`{}` has no address here", host.name));
    for address in lookup_host((host.name.as_str(), host.port)).await? {
        if reach == Reach::Loopback && !address.ip().to_canonical().is_loopback() {
            continue;
        }
        match TcpStream::connect(address).await {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failed = same(&error),
        }
    }
    Err(failed)
}

async fn open_tls(host: &Host, tls: &TlsConnector) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.name.clone()).map_err(io::Error::other)?;
    let stream = open_tcp(host, Reach::Anywhere).await?;
    let connected = tls.connect(name, stream).await;
    connected.map_err(|error| {
        // A certificate that is not trusted, or no TLS at all: a retry changes nothing.
        if error.kind() == io::ErrorKind::InvalidData {
            let text = format!("the TLS handshake failed: {error}");
            return io::Error::new(io::ErrorKind::PermissionDenied, text);
        }
        error
    })
}

async fn limited<T>(open: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match time::timeout(CONNECT_LIMIT, open).await {
        Ok(opened) => opened,
        Err(_) => {
            let text = format!("no answer within {CONNECT_LIMIT:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}
