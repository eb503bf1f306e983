//! Connections to other programs. Nothing is sent to another machine unless the operator allows it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http::Uri;
use tokio::net::TcpStream;

use crate::config::AllowedHosts;

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
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for address in self.addresses(port).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn localhost_is_not_looked_up() {
        let uri: Uri = "http://web.localhost:3000".parse().unwrap();
        assert_eq!(Host::of(&uri), Host::Localhost);
    }
}
