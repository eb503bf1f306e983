//! The transport: HTTP/2 over a Unix socket whose other end is trusted.

use std::{io, path::Path, time::Duration};

use hyper_util::rt::TokioIo;
use nix::unistd::{Uid, geteuid};
use tokio::{io::BufWriter, net::UnixStream, time};
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use crate::{
    address::Address,
    error::{Error, io_source, same},
};

/// How long to pause when the daemon's queue of connections is full, which the kernel says at once.
const QUEUE_FULL_PAUSE: Duration = Duration::from_millis(5);
/// How often: about five seconds in all.
const QUEUE_FULL_TRIES: usize = 1000;

/// Connects now, and again by itself whenever the connection breaks.
pub(crate) async fn channel(address: &Address) -> Result<Channel, Error> {
    let path = address.path().to_owned();
    let connector = service_fn(move |_: Uri| {
        let path = path.clone();
        // Buffered, so that the preface and the settings are one write, and wake the daemon once.
        async move { Ok::<_, io::Error>(TokioIo::new(BufWriter::new(open(&path).await?))) }
    });
    // HTTP/2 wants an authority; the connector does not look at it.
    let endpoint = Endpoint::from_static("http://localhost");
    endpoint
        .connect_with_connector(connector)
        .await
        .map_err(|error| {
            let source = io_source(&error)
                .map(same)
                .unwrap_or_else(|| io::Error::other(error));
            Error::from_connect(source, address)
        })
}

async fn open(path: &Path) -> io::Result<UnixStream> {
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

/// What is sent may hold secrets: only this user's daemon, or root's, may have it. Root itself may
/// talk to anybody's.
fn check_peer(peer: Uid) -> io::Result<()> {
    let own = geteuid();
    if peer == own || peer.is_root() || own.is_root() {
        return Ok(());
    }
    let text = format!("whoever listens there is user {peer}, not user {own}");
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}
