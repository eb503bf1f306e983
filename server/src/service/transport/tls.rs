//! TLS for whoever comes over TCP: a certificate and its key, read once at start-up.

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

/// Why there can be no TLS. No text of it has anything from the files themselves.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file has nothing in it that could be used.
    #[error("{} holds no {what} in PEM form", path.display())]
    NotPem {
        /// Which.
        path: PathBuf,
        /// What was looked for.
        what: &'static str,
    },
    /// The two do not go together, or one cannot be used.
    #[error(
        "the certificate {} and the key {} cannot be used: {source}", certificate.display(), key.display()
    )]
    Refused {
        /// The certificate.
        certificate: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why not.
        source: rustls::Error,
    },
}

/// What takes TLS connections. It holds the key, and so is not shown.
#[derive(Clone)]
pub(super) struct Tls(TlsAcceptor);

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls(..)")
    }
}

impl Tls {
    /// With this certificate and this key.
    pub(super) fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        acceptor(files).map(Self)
    }

    /// The handshake.
    pub(super) fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> impl Future<Output = io::Result<TlsStream<S>>> {
        self.0.accept(stream)
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, TlsError> {
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
    config.alpn_protocols = vec![b"h2".to_vec()];
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
        tracing::warn!(path = %path.display(), "the key is open to every user of this machine");
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
