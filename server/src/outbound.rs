//! Connections to other programs. Nothing is sent to another machine unless the operator allows it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use http::Uri;
use tokio::{net::TcpStream, time::timeout};

use crate::config::AllowedHosts;

/// The time that one address of several has to accept a connection: the next one may be there.
const ADDRESS_LIMIT: Duration = Duration::from_secs(3);

/// The host of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Host {
    Address(IpAddr),
    /// `localhost`, or a name below it, which is this machine whatever a resolver says.
    Localhost,
    Name(String),
}

/// A host that is not this machine, where the operator has not allowed it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NotLoopback {
    pub(crate) host: String,
}

impl Host {
    pub(crate) fn of(uri: &Uri) -> Self {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => Self::Address(address.to_canonical()),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Self::Localhost,
            Err(_) => Self::Name(host),
        }
    }

    pub(crate) fn check(&self, hosts: AllowedHosts) -> Result<(), NotLoopback> {
        let host = match (hosts, self) {
            (AllowedHosts::Any, _) | (AllowedHosts::Loopback, Self::Localhost) => return Ok(()),
            (AllowedHosts::Loopback, Self::Address(address)) if address.is_loopback() => {
                return Ok(());
            }
            (AllowedHosts::Loopback, Self::Address(address)) => address.to_string(),
            (AllowedHosts::Loopback, Self::Name(name)) => name.clone(),
        };
        Err(NotLoopback { host })
    }

    /// Connects to the first address of the host that accepts.
    pub(crate) async fn connect(&self, port: u16) -> io::Result<TcpStream> {
        connect_to_any(&self.addresses(port).await?, ADDRESS_LIMIT).await
    }

    async fn addresses(&self, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(match self {
            Self::Address(address) => vec![(*address, port).into()],
            Self::Localhost => vec![
                (Ipv4Addr::LOCALHOST, port).into(),
                (Ipv6Addr::LOCALHOST, port).into(),
            ],
            Self::Name(name) => tokio::net::lookup_host((&**name, port)).await?.collect(),
        })
    }
}

async fn connect_to_any(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// H7: a listener whose queue is full answers no further connection, as a machine that is off.
    #[tokio::test]
    async fn an_address_that_does_not_answer_does_not_hide_the_next_one() {
        let dead = tokio::net::TcpSocket::new_v4().unwrap();
        dead.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let dead = dead.listen(1).unwrap();
        let address = dead.local_addr().unwrap();
        let limit = Duration::from_millis(100);
        let mut waiting = Vec::new();
        while let Ok(connected) = timeout(limit, TcpStream::connect(address)).await {
            waiting.push(connected.unwrap());
        }
        let live = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addresses = [address, live.local_addr().unwrap()];
        let stream = connect_to_any(&addresses, limit).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        let error = connect_to_any(&addresses[..1], limit).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn localhost_is_not_looked_up() {
        let uri: Uri = "http://web.localhost:3000".parse().unwrap();
        assert_eq!(Host::of(&uri), Host::Localhost);
    }
}
