//! A GET request, for its status alone. Nothing is sent to another machine unless the operator allows it.

use std::io;

use http::{Request, StatusCode, Uri, header};
use http_body_util::Empty;
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::task::JoinSet;

use crate::{
    config::AllowedHosts,
    outbound::{Host, NotLoopback},
    task::Probe,
};

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

impl From<NotLoopback> for HostNotAllowed {
    fn from(NotLoopback { host }: NotLoopback) -> Self {
        Self { host }
    }
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
    hosts: AllowedHosts,
) -> Result<(), HostNotAllowed> {
    match probe {
        Probe::HttpUrl(url) => match url.parse::<Uri>() {
            Ok(uri) => Ok(Host::of(&uri).check(hosts)?),
            // The edge accepts no other text.
            Err(_) => Err(HostNotAllowed { host: url.clone() }),
        },
        Probe::Port(_) | Probe::Command(_) | Probe::Pattern(_) => Ok(()),
    }
}

/// Requests a URL and returns the status of the answer. Its body is not read.
pub(super) async fn get(url: &str, hosts: AllowedHosts) -> Result<StatusCode, GetError> {
    let uri: Uri = url.parse().map_err(http::Error::from)?;
    let host = Host::of(&uri);
    host.check(hosts).map_err(HostNotAllowed::from)?;
    let stream = host.connect(uri.port_u16().unwrap_or(80)).await?;
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
            assert!(check(url, AllowedHosts::Loopback).is_ok(), "{url}");
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
            let refused = check(url, AllowedHosts::Loopback).unwrap_err();
            assert_eq!(refused.host, host, "{url}");
            assert!(check(url, AllowedHosts::Any).is_ok(), "{url}");
        }
    }
}
