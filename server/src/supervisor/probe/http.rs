//! A GET request, for its status alone. Nothing is sent to another machine unless the operator allows it.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
};

use http::{Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};

use crate::{config::ProbeHosts, task::Probe};

/// The longest head of an answer that is read.
const LONGEST_HEAD: usize = 64 << 10;

/// A URL that names another machine, where the operator has not allowed it.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot look at {host}: this server looks at loopback addresses only (heeler serve --allow-probe-hosts allows others)"
)]
pub(crate) struct HostNotAllowed {
    pub(crate) host: String,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum GetError {
    #[error("not a URL: {0}")]
    Malformed(#[from] http::Error),
    #[error(transparent)]
    NotAllowed(#[from] HostNotAllowed),
    #[error("cannot connect: {0}")]
    Connect(#[from] io::Error),
    #[error("no answer: {0}")]
    Exchange(#[from] hyper::Error),
}

/// Checks the host of a URL, if the probe has one.
pub(in crate::supervisor) fn check_host(
    probe: &Probe,
    hosts: ProbeHosts,
) -> Result<(), HostNotAllowed> {
    match probe {
        Probe::HttpUrl(url) => match url.parse::<Uri>() {
            Ok(uri) => Host::of(&uri).check(hosts),
            // The edge accepts no other text.
            Err(_) => Err(HostNotAllowed { host: url.clone() }),
        },
        Probe::Port(_) | Probe::Command(_) => Ok(()),
    }
}

/// Requests a URL and returns the status of the answer. Its body is not read.
pub(super) async fn get(url: &str, hosts: ProbeHosts) -> Result<StatusCode, GetError> {
    let uri: Uri = url.parse().map_err(http::Error::from)?;
    let host = Host::of(&uri);
    host.check(hosts)?;
    let stream = connect(host.addresses(uri.port_u16().unwrap_or(80)).await?).await?;
    let (mut sender, connection) = http1::Builder::new()
        .max_buf_size(LONGEST_HEAD)
        .handshake(TokioIo::new(stream))
        .await?;
    // Dropped, and so ended, with the request.
    let mut driver = JoinSet::new();
    driver.spawn(connection);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let request = Request::get(path)
        .header(header::HOST, authority)
        .header(
            header::USER_AGENT,
            concat!("heeler/", env!("CARGO_PKG_VERSION")),
        )
        .header(header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    Ok(sender.send_request(request).await?.status())
}

/// Connects to the first address that accepts.
async fn connect(addresses: Vec<SocketAddr>) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The host of a URL.
#[derive(Debug, PartialEq, Eq)]
enum Host {
    Address(IpAddr),
    /// `localhost`, or a name below it, which is this machine whatever a resolver says.
    Localhost,
    Name(String),
}

impl Host {
    fn of(uri: &Uri) -> Self {
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        match bare.parse::<IpAddr>() {
            Ok(address) => Self::Address(address.to_canonical()),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Self::Localhost,
            Err(_) => Self::Name(host),
        }
    }

    fn check(&self, hosts: ProbeHosts) -> Result<(), HostNotAllowed> {
        let host = match (hosts, self) {
            (ProbeHosts::Any, _) | (ProbeHosts::Loopback, Self::Localhost) => return Ok(()),
            (ProbeHosts::Loopback, Self::Address(address)) if address.is_loopback() => {
                return Ok(());
            }
            (ProbeHosts::Loopback, Self::Address(address)) => address.to_string(),
            (ProbeHosts::Loopback, Self::Name(name)) => name.clone(),
        };
        Err(HostNotAllowed { host })
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

    /// Y1
    #[test]
    fn without_permission_only_this_machine_is_looked_at() {
        let check = |url: &str, hosts| check_host(&Probe::HttpUrl(url.to_owned()), hosts);
        for url in [
            "http://localhost:3000/health?x=1",
            "http://LOCALHOST",
            "http://app.localhost:80/",
            "http://127.0.0.1:1/",
            "http://127.9.8.7/",
            "http://[::1]:3000/",
            "http://[::ffff:127.0.0.1]/",
        ] {
            assert!(check(url, ProbeHosts::Loopback).is_ok(), "{url}");
        }
        for (url, host) in [
            ("http://169.254.169.254/latest", "169.254.169.254"),
            ("http://0.0.0.0/", "0.0.0.0"),
            ("http://10.0.0.1/", "10.0.0.1"),
            ("http://[fe80::1]/", "fe80::1"),
            ("http://[::ffff:10.0.0.1]/", "10.0.0.1"),
            ("http://127.1/", "127.1"),
            ("http://2130706433/", "2130706433"),
            ("http://localhost.example.com/", "localhost.example.com"),
            ("http://notlocalhost/", "notlocalhost"),
            ("http://Example.com:80/", "example.com"),
        ] {
            let refused = check(url, ProbeHosts::Loopback).unwrap_err();
            assert_eq!(refused.host, host, "{url}");
            assert!(check(url, ProbeHosts::Any).is_ok(), "{url}");
        }
    }

    #[test]
    fn localhost_is_not_looked_up() {
        let uri: Uri = "http://web.localhost:3000".parse().unwrap();
        assert_eq!(Host::of(&uri), Host::Localhost);
    }
}
