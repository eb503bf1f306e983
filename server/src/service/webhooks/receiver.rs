//! Requests to a receiver. Each has a connection of its own, is signed, and follows no redirect.

use std::{fmt, io, sync::Arc, time::Duration};

use http::{HeaderValue, Request, StatusCode, Uri, header, uri::Scheme};
use http_body_util::Full;
use hyper::{body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use ring::hmac;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    task::JoinSet,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{ClientConfig, RootCertStore, crypto::ring as provider, pki_types::ServerName},
};

use super::WebhookError;
use crate::{
    config::AllowedHosts,
    outbound::{Host, NotLoopback},
};

/// The longest time from the connection to the status of the answer.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest head of an answer that is read.
const LONGEST_HEAD: usize = 64 << 10;

/// A URL that events can be sent to.
#[derive(Debug, Clone)]
pub(super) struct Address {
    uri: Uri,
    host: Host,
    port: u16,
    /// The name in the certificate of a receiver with TLS.
    tls_name: Option<ServerName<'static>>,
}

/// The authorities that sign certificates.
#[derive(Clone)]
pub(super) struct Roots(TlsConnector);

/// A receiver. It has the secret, so its `Debug` shows its name only.
pub(super) struct Receiver {
    address: Address,
    key: hmac::Key,
    tls: Option<Roots>,
}

/// An event as it is sent.
#[derive(Debug)]
pub(super) struct Notice {
    /// The epoch and the revision: the same for each repetition.
    pub(super) id: HeaderValue,
    /// The type of the event.
    pub(super) event: HeaderValue,
    pub(super) body: Bytes,
}

/// The reason why a receiver has not accepted an event.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    #[error("cannot connect: {0}")]
    Connect(io::Error),
    #[error("no answer: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("no request: {0}")]
    Request(#[from] http::Error),
    #[error("the answer is {0}")]
    Refused(StatusCode),
    #[error("no answer within {LIMIT:?}")]
    Late,
}

impl Address {
    /// Reads a URL, whose host must be allowed.
    pub(super) fn read(url: &str, hosts: AllowedHosts) -> Result<Self, WebhookError> {
        let malformed = |_| WebhookError::Url {
            shown: "a webhook".to_owned(),
            problem: "its URL is malformed",
        };
        let uri: Uri = url.parse().map_err(malformed)?;
        let bad = |problem| WebhookError::Url {
            shown: shown(&uri),
            problem,
        };
        let authority = uri
            .authority()
            .ok_or_else(|| bad("the URL names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("the URL contains a user, which is not sent"));
        }
        let name = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']');
        let (port, tls_name) = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTP => (80, None),
            Some(scheme) if *scheme == Scheme::HTTPS => {
                let name = ServerName::try_from(name.to_owned());
                (443, Some(name.map_err(|_| bad("the host is malformed"))?))
            }
            Some(_) | None => {
                return Err(bad("the URL does not begin with http:// or https://"));
            }
        };
        let host = Host::of(&uri);
        let checked = host.check(hosts);
        checked.map_err(|NotLoopback { host }| WebhookError::HostNotAllowed { host })?;
        Ok(Self {
            port: uri.port_u16().unwrap_or(port),
            host,
            tls_name,
            uri,
        })
    }

    pub(super) fn needs_tls(&self) -> bool {
        self.tls_name.is_some()
    }

    pub(super) fn receiver(self, key: hmac::Key, tls: Option<Roots>) -> Receiver {
        Receiver {
            address: self,
            key,
            tls,
        }
    }

    /// The host with the port, if one is given.
    fn authority(&self) -> &str {
        self.uri
            .authority()
            .map_or("", |authority| authority.as_str())
    }
}

/// The part of a URL that is no secret: its scheme and its host.
fn shown(uri: &Uri) -> String {
    let host = uri.host().unwrap_or("a webhook");
    match uri.scheme_str() {
        Some(scheme) => format!("{scheme}://{host}"),
        None => host.to_owned(),
    }
}

impl Roots {
    /// The authorities that this system trusts.
    pub(super) fn of_the_system() -> Result<Self, WebhookError> {
        let mut roots = RootCertStore::empty();
        let found = rustls_native_certs::load_native_certs().certs;
        if roots.add_parsable_certificates(found).0 == 0 {
            return Err(WebhookError::NoAuthorities);
        }
        let config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has the protocol versions that it was built with")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(TlsConnector::from(Arc::new(config))))
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Roots(..)")
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Receiver").field(&self.name()).finish()
    }
}

impl Receiver {
    /// Its host, for the log: the path of a URL may be a secret.
    pub(super) fn name(&self) -> &str {
        self.address.authority()
    }

    /// Sends an event; any answer but a success is a failure.
    pub(super) async fn send(&self, notice: &Notice) -> Result<(), SendError> {
        match timeout(LIMIT, self.exchange(notice)).await {
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(SendError::Refused(status)),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(SendError::Late),
        }
    }

    async fn exchange(&self, notice: &Notice) -> Result<StatusCode, SendError> {
        let Address {
            host,
            port,
            tls_name,
            ..
        } = &self.address;
        let stream = host.connect(*port).await.map_err(SendError::Connect)?;
        match (tls_name, &self.tls) {
            (Some(name), Some(Roots(tls))) => {
                let stream = tls.connect(name.clone(), stream).await;
                self.post(stream.map_err(SendError::Connect)?, notice).await
            }
            (Some(_), None) | (None, _) => self.post(stream, notice).await,
        }
    }

    async fn post<S>(&self, stream: S, notice: &Notice) -> Result<StatusCode, SendError>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(LONGEST_HEAD)
            .handshake(TokioIo::new(stream))
            .await?;
        // Dropped, and so ended, with the request.
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        let uri = &self.address.uri;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let request = Request::post(path)
            .header(header::HOST, self.address.authority())
            .header(header::CONTENT_TYPE, "application/json")
            .header(
                header::USER_AGENT,
                concat!("heeler/", env!("CARGO_PKG_VERSION")),
            )
            .header(header::CONNECTION, "close")
            .header("heeler-id", &notice.id)
            .header("heeler-event", &notice.event)
            .header("heeler-signature", self.signature(&notice.body))
            .body(Full::new(notice.body.clone()))?;
        Ok(sender.send_request(request).await?.status())
    }

    /// `sha256=` and the HMAC of the body in hexadecimal digits.
    fn signature(&self, body: &[u8]) -> String {
        let mac = hmac::sign(&self.key, body);
        let digits = mac.as_ref().iter().map(|byte| format!("{byte:02x}"));
        format!("sha256={}", digits.collect::<String>())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// H7
    #[test]
    fn only_urls_of_this_machine_are_taken_unless_others_are_allowed() {
        for url in [
            "http://127.0.0.1:9/hook?a=b",
            "http://localhost/",
            "http://app.localhost:80",
            "https://[::1]:8443/x",
        ] {
            Address::read(url, AllowedHosts::Loopback).unwrap();
        }
        for url in [
            "http://10.0.0.1/",
            "https://ntfy.sh/topic",
            "http://localhost.example/",
        ] {
            let refused = Address::read(url, AllowedHosts::Loopback).unwrap_err();
            assert!(
                matches!(refused, WebhookError::HostNotAllowed { .. }),
                "{url}"
            );
            Address::read(url, AllowedHosts::Any).unwrap();
        }
        for url in [
            "",
            "localhost",
            "/hook",
            "ftp://localhost/",
            "unix:/x",
            "http://",
            "http://user:secret@localhost/",
            "http://local host/",
            "https://*/",
        ] {
            let refused = Address::read(url, AllowedHosts::Any).unwrap_err();
            assert!(matches!(refused, WebhookError::Url { .. }), "{url}");
        }
    }

    /// N4
    #[test]
    fn a_refusal_names_the_scheme_and_the_host_of_a_url_alone() {
        for (url, named) in [
            ("http://user:secret@localhost/secret", "http://localhost"),
            ("ftp://localhost/secret?secret", "ftp://localhost"),
            ("https://ntfy.example/secret", "ntfy.example"),
            ("http://local host/secret", "malformed"),
            ("/secret", "a webhook"),
        ] {
            let refused = Address::read(url, AllowedHosts::Loopback).unwrap_err();
            let (text, debug) = (refused.to_string(), format!("{refused:?}"));
            assert!(text.contains(named), "{url}: {text}");
            assert!(
                !text.contains("secret") && !debug.contains("secret"),
                "{debug}"
            );
        }
    }

    /// H7: the second test case of RFC 4231.
    #[test]
    fn the_signature_is_the_hmac_of_the_body() {
        let address = Address::read("http://localhost/", AllowedHosts::Loopback).unwrap();
        let key = hmac::Key::new(hmac::HMAC_SHA256, b"Jefe");
        let receiver = address.receiver(key, None);
        assert_eq!(
            receiver.signature(b"what do ya want for nothing?"),
            "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(format!("{receiver:?}"), "Receiver(\"localhost\")");
    }
}
