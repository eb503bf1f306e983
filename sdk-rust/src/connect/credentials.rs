//! The token that a client presents over TCP, and the authorities that it trusts.
//!
//! Over a Unix socket neither is used: the kernel identifies both peers.

use std::{
    env, fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject},
    },
};
use tonic::{
    Request, Status,
    metadata::{Ascii, MetadataValue},
    service::Interceptor,
};

use super::{Address, paths};

/// The options of a connection: over TCP the token, and the authority of the certificate; for a daemon that
/// may have to be started, the program.
///
/// ```no_run
/// use heeler_client::{Client, ConnectOptions, Error};
///
/// # async fn example() -> Result<(), Error> {
/// let options = ConnectOptions::new()
///     .token_file("/etc/heeler/token")
///     .tls_ca("/etc/heeler/ca.pem");
/// let client = Client::connect_with("tls:build.example.com:7117".parse()?, options).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct ConnectOptions {
    token: Option<String>,
    token_file: Option<PathBuf>,
    tls_ca: Option<PathBuf>,
    program: Option<PathBuf>,
    trace_parent: Option<String>,
}

/// The reason why a token or an authority cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    #[error("cannot read the token file {}: {source}", path.display())]
    TokenFile { path: PathBuf, source: io::Error },
    #[error("the token is empty or contains invalid characters")]
    Token,
    #[error("cannot read the certificates in {}: {problem}", path.display())]
    Authority { path: PathBuf, problem: String },
    #[error(
        "this system has no certificates of authorities: give the daemon's by {}",
        ConnectOptions::TLS_CA_ENV
    )]
    NoAuthorities,
}

impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectOptions")
            .field("token", &self.token.as_ref().map(|_| ".."))
            .field("token_file", &self.token_file)
            .field("tls_ca", &self.tls_ca)
            .field("program", &self.program)
            .field("trace_parent", &self.trace_parent)
            .finish()
    }
}

impl ConnectOptions {
    /// The environment variable that names the file with the token.
    pub const TOKEN_FILE_ENV: &'static str = "HEELER_TOKEN_FILE";
    /// The environment variable with the token of the task that a program runs in. The daemon sets it.
    pub const TASK_TOKEN_ENV: &'static str = "HEELER_TOKEN";
    /// The environment variable that names the file with the authority's certificate.
    pub const TLS_CA_ENV: &'static str = "HEELER_TLS_CA";

    /// The defaults: the token in the file that `HEELER_TOKEN_FILE` names, else that of the task that the
    /// program runs in, for a loopback address and the one in `HEELER_ADDR`, else, for a loopback address, the token of
    /// this user's own daemon; the authority in the file that `HEELER_TLS_CA` names, else those of the system.
    pub fn new() -> Self {
        Self::default()
    }

    /// The token itself.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The file with the token: `token` in the daemon's state directory, or a copy of it.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token_file = Some(path.into());
        self
    }

    /// The file, in PEM form, with the certificate of the authority that signed the daemon's, or with the
    /// daemon's own if it is self-signed.
    pub fn tls_ca(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls_ca = Some(path.into());
        self
    }

    /// The `heeler` command that starts the daemon, for [`Client::connect_or_start_with`]: by default the one
    /// that `HEELER_BINARY` names, else the one on the PATH.
    ///
    /// [`Client::connect_or_start_with`]: crate::Client::connect_or_start_with
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.program = Some(path.into());
        self
    }

    /// The span that every call is made in, as a W3C `traceparent`: a daemon that exports traces puts its spans
    /// below it. A text that is no `traceparent` is ignored.
    pub fn trace_parent(mut self, text: impl Into<String>) -> Self {
        self.trace_parent = Some(text.into());
        self
    }

    pub(crate) fn chosen_program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    /// The headers of every call to this address.
    pub(crate) fn headers(&self, address: &Address) -> Result<Headers, CredentialsError> {
        let trace_parent = self.trace_parent.as_deref();
        Ok(Headers {
            bearer: self.bearer(address)?,
            trace_parent: trace_parent.and_then(|text| text.parse().ok()),
        })
    }

    /// The token for this address.
    fn bearer(&self, address: &Address) -> Result<Option<Value>, CredentialsError> {
        if address.path().is_some() {
            return Ok(None);
        }
        if let Some(token) = &self.token {
            return bearer(token).map(Some);
        }
        let named = self.token_file.clone();
        if let Some(path) = named.or_else(|| from_env(Self::TOKEN_FILE_ENV)) {
            return match fs::read_to_string(&path) {
                Ok(token) => bearer(token.trim()).map(Some),
                Err(source) => Err(CredentialsError::TokenFile { path, source }),
            };
        }
        let of_task = env::var(Self::TASK_TOKEN_ENV).ok();
        let own = Address::from_env().ok().flatten();
        if let Some(token) = of_task.filter(|token| !token.is_empty())
            && is_of_own_daemon(address, own.as_ref())
        {
            return bearer(&token).map(Some);
        }
        // Without a token, the daemon's refusal says what to do.
        match paths::token_file().map(fs::read_to_string) {
            Ok(Ok(token)) if address.is_loopback() => bearer(token.trim()).map(Some),
            Ok(_) | Err(_) => Ok(None),
        }
    }

    /// The connector of TLS connections.
    pub(crate) fn tls(&self) -> Result<TlsConnector, CredentialsError> {
        let named = self.tls_ca.clone().or_else(|| from_env(Self::TLS_CA_ENV));
        let roots = match named {
            Some(path) => authorities(&path)?,
            None => system_authorities()?,
        };
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has the protocol versions that it was built with")
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

/// Returns whether an address may be that of the daemon of the task that the program runs in: the one that the daemon
/// has put into the environment, or another one of this machine, where it may listen on TCP as well. Others do not get
/// the task's token.
fn is_of_own_daemon(address: &Address, own: Option<&Address>) -> bool {
    address.is_loopback() || own == Some(address)
}

fn from_env(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn authorities(path: &Path) -> Result<RootCertStore, CredentialsError> {
    let failed = |problem: String| CredentialsError::Authority {
        path: path.to_owned(),
        problem,
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(path).map_err(|error| failed(error.to_string()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        roots
            .add(certificate)
            .map_err(|error| failed(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(failed("there is none in PEM form".to_owned())),
        false => Ok(roots),
    }
}

fn system_authorities() -> Result<RootCertStore, CredentialsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    match added {
        0 => Err(CredentialsError::NoAuthorities),
        _ => Ok(roots),
    }
}

type Value = MetadataValue<Ascii>;

/// Adds the token and the span, if there are any, to every call.
#[derive(Clone)]
pub struct Headers {
    bearer: Option<Value>,
    trace_parent: Option<Value>,
}

fn bearer(token: &str) -> Result<Value, CredentialsError> {
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(CredentialsError::Token);
    }
    let value = MetadataValue::try_from(format!("Bearer {token}"));
    let mut value = value.map_err(|_| CredentialsError::Token)?;
    // Keeps it out of logs and of the header compression table.
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Headers(..)")
    }
}

impl Interceptor for Headers {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let headers = request.metadata_mut();
        if let Some(value) = &self.bearer {
            headers.insert("authorization", value.clone());
        }
        if let Some(value) = &self.trace_parent {
            headers.insert("traceparent", value.clone());
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use tonic::metadata::KeyAndValueRef;

    use super::*;

    fn tcp() -> Address {
        "tcp:127.0.0.1:7117".parse().unwrap()
    }

    /// The headers that a call gets.
    fn headers(options: &ConnectOptions, address: &Address) -> Vec<(String, String)> {
        let mut headers = options.headers(address).unwrap();
        let call = headers.call(Request::new(())).unwrap();
        let text = |header: KeyAndValueRef<'_>| match header {
            KeyAndValueRef::Ascii(name, value) => {
                (name.to_string(), value.to_str().unwrap().to_owned())
            }
            KeyAndValueRef::Binary(name, _) => panic!("{name} is binary"),
        };
        call.metadata().iter().map(text).collect()
    }

    /// N2
    #[test]
    fn a_token_is_read_from_its_file_and_not_sent_to_a_unix_socket() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("token");
        fs::write(&file, "abc\n").unwrap();
        let options = ConnectOptions::new().token_file(&file);
        let authorization = ("authorization".to_owned(), "Bearer abc".to_owned());
        assert_eq!(headers(&options, &tcp()), [authorization]);
        assert_eq!(headers(&options, &"unix:/x".parse().unwrap()), []);
    }

    /// K4
    #[test]
    fn the_token_of_a_task_is_for_its_own_daemon() {
        let address = |text: &str| text.parse::<Address>().unwrap();
        let elsewhere = address("tls:other.example:7117");
        for (own, expected) in [
            (None, false),
            (Some("unix:/run/heeler.sock"), false),
            (Some("tls:build.example.com:7117"), false),
            (Some("tls:other.example:7118"), false),
            (Some("tls:other.example:7117"), true),
        ] {
            let own = own.map(address);
            assert_eq!(
                is_of_own_daemon(&elsewhere, own.as_ref()),
                expected,
                "{own:?}"
            );
            assert!(is_of_own_daemon(&tcp(), own.as_ref()));
        }
    }

    /// H8
    #[test]
    fn the_span_is_sent_to_every_address() {
        let span = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let options = ConnectOptions::new().trace_parent(span);
        let expected = [("traceparent".to_owned(), span.to_owned())];
        assert_eq!(headers(&options, &"unix:/x".parse().unwrap()), expected);
        let options = ConnectOptions::new().trace_parent("a\nb");
        assert_eq!(headers(&options, &"unix:/x".parse().unwrap()), []);
    }

    #[test]
    fn a_token_that_cannot_be_read_names_its_file() {
        let options = ConnectOptions::new().token_file("/nowhere/token");
        let error = options.headers(&tcp()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/token"), "{error}");
        for bad in ["", "a b", "a\nb", "é"] {
            let options = ConnectOptions::new().token(bad);
            assert!(matches!(
                options.headers(&tcp()),
                Err(CredentialsError::Token)
            ));
        }
    }

    #[test]
    fn a_file_without_certificates_is_named() {
        let root = tempfile::tempdir().unwrap();
        let empty = root.path().join("ca.pem");
        fs::write(&empty, "nothing").unwrap();
        for path in [empty.as_path(), Path::new("/nowhere/ca.pem")] {
            let Err(error) = ConnectOptions::new().tls_ca(path).tls() else {
                panic!("taken: {}", path.display())
            };
            assert!(
                error.to_string().contains(path.to_str().unwrap()),
                "{error}"
            );
        }
    }

    /// N4
    #[test]
    fn the_debug_text_does_not_contain_the_token() {
        let options = ConnectOptions::new().token("secret");
        let headers = options.headers(&tcp()).unwrap();
        assert!(!format!("{options:?}{headers:?}{:?}", headers.bearer).contains("secret"));
    }
}
