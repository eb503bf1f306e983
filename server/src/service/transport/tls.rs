//! TLS for connections over TCP: a certificate and its key, read once at start-up.

use std::{
    fmt, fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{
        self, ServerConfig,
        crypto::ring,
        pki_types::{
            CertificateDer, PrivateKeyDer,
            pem::{self, PemObject},
        },
    },
    server::TlsStream,
};

use crate::config::TlsFiles;

/// The reason why TLS cannot be set up. The texts contain nothing of the files' content.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} contains no {what} in PEM form", path.display())]
    NotPem { path: PathBuf, what: &'static str },
    /// The two do not belong together, or one is invalid.
    #[error(
        "the certificate {} and the key {} cannot be used: {source}", certificate.display(), key.display()
    )]
    Refused {
        certificate: PathBuf,
        key: PathBuf,
        source: rustls::Error,
    },
}

/// Accepts TLS connections. It has the private key, so its `Debug` shows nothing.
#[derive(Clone)]
pub(super) struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// Offers these protocols to clients.
    pub(super) fn new(files: &TlsFiles, protocols: &[&str]) -> Result<Self, TlsError> {
        acceptor(files, protocols).map(Self)
    }

    /// Performs the handshake.
    pub(super) fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> impl Future<Output = io::Result<TlsStream<S>>> {
        self.0.accept(stream)
    }
}

fn acceptor(files: &TlsFiles, protocols: &[&str]) -> Result<TlsAcceptor, TlsError> {
    let certificates = certificates(&files.certificate)?;
    let key = key(&files.key)?;
    let refused = |source| TlsError::Refused {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
        source,
    };
    let provider = Arc::new(ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(refused)?;
    config.alpn_protocols = protocols
        .iter()
        .map(|one| one.as_bytes().to_vec())
        .collect();
    Ok(TlsAcceptor::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let unusable = |error| unusable(path, "certificate", error);
    let found = CertificateDer::pem_file_iter(path)
        .map_err(unusable)?
        .collect::<Result<Vec<_>, _>>()
        .map_err(unusable)?;
    match found.is_empty() {
        true => Err(unusable(pem::Error::NoItemsFound)),
        false => Ok(found),
    }
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    if fs::metadata(path).is_ok_and(|found| found.mode() & 0o007 != 0) {
        tracing::warn!(path = %path.display(), "the TLS key is readable by every user of this machine");
    }
    PrivateKeyDer::from_pem_file(path).map_err(|error| unusable(path, "private key", error))
}

fn unusable(path: &Path, what: &'static str, error: pem::Error) -> TlsError {
    let path = path.to_owned();
    #[allow(clippy::wildcard_enum_match_arm, reason = "an enum that may grow")]
    match error {
        pem::Error::Io(source) => TlsError::Read { path, source },
        _ => TlsError::NotPem { path, what },
    }
}
