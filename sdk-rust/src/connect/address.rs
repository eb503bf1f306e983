//! The address of a daemon. It is parsed once, so that no other code handles a bad address.

use std::{
    env, fmt,
    net::IpAddr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use super::paths::{self, PathError};

/// Maximum length of a socket path, without the closing NUL.
const MAX_PATH: usize = 107;

/// The address of a daemon.
///
/// | address | meaning |
/// | --- | --- |
/// | `unix:/absolute/path` | the Unix socket of a daemon of this user |
/// | `tcp:127.0.0.1:7117` | TCP without TLS: loopback only |
/// | `tls:build.example.com:7117` | TCP and TLS: any machine |
///
/// ```
/// use heeler_client::Address;
///
/// let address: Address = "unix:/run/heeler.sock".parse().unwrap();
/// assert_eq!(address.path().unwrap().to_str(), Some("/run/heeler.sock"));
/// assert!("unix:heeler.sock".parse::<Address>().is_err());
///
/// assert!("tls:10.0.0.7:7117".parse::<Address>().is_ok());
/// assert!("tcp:10.0.0.7:7117".parse::<Address>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address(Place);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Unix(PathBuf),
    Tcp(Host),
    Tls(Host),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Host {
    /// A name, or a number without brackets.
    pub(crate) name: String,
    pub(crate) port: u16,
}

/// The reason why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    #[error(
        "`{address}` is not an address: write unix:/absolute/path, tcp:HOST:PORT or tls:HOST:PORT"
    )]
    UnknownScheme { address: String },
    #[error(
        "`{address}` names no host and port: write {scheme}:HOST:PORT, e.g. {scheme}:127.0.0.1:7117 or {scheme}:[::1]:7117"
    )]
    NoHostAndPort {
        address: String,
        scheme: &'static str,
    },
    /// The token would cross the network in the clear.
    #[error(
        "`{address}` is not on this machine's loopback, and tcp: is in the clear: write tls:HOST:PORT"
    )]
    NotLoopback { address: String },
    #[error("the socket path `{}` is not absolute: write unix:/absolute/path", path.display())]
    RelativePath { path: PathBuf },
    #[error("the socket path `{}` has {} bytes: the limit is {MAX_PATH}", path.display(), path.as_os_str().len())]
    PathTooLong { path: PathBuf },
    #[error("the socket path {path:?} contains a NUL")]
    Nul { path: PathBuf },
    #[error("{} is not valid UTF-8", Address::ENV)]
    NotUnicode,
    /// There is no default address.
    #[error(transparent)]
    NoDefault(#[from] PathError),
}

impl Address {
    /// The environment variable that overrides the default address.
    pub const ENV: &'static str = "HEELER_ADDR";

    /// The socket at this path.
    pub fn unix(path: impl Into<PathBuf>) -> Result<Self, AddressError> {
        let path = path.into();
        let bytes = path.as_os_str().as_bytes();
        if !path.is_absolute() {
            return Err(AddressError::RelativePath { path });
        }
        if bytes.contains(&0) {
            return Err(AddressError::Nul { path });
        }
        if bytes.len() > MAX_PATH {
            return Err(AddressError::PathTooLong { path });
        }
        Ok(Self(Place::Unix(path)))
    }

    /// The calling user's own socket, whatever the environment says.
    pub fn default_for_user() -> Result<Self, AddressError> {
        Self::unix(paths::default_socket()?)
    }

    /// The address in `HEELER_ADDR`; `None` if it is unset or empty.
    pub fn from_env() -> Result<Option<Self>, AddressError> {
        match env::var(Self::ENV) {
            Ok(address) if address.is_empty() => Ok(None),
            Ok(address) => address.parse().map(Some),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => Err(AddressError::NotUnicode),
        }
    }

    /// The address in `HEELER_ADDR`, else the user's own socket.
    pub fn from_env_or_default() -> Result<Self, AddressError> {
        match Self::from_env()? {
            Some(address) => Ok(address),
            None => Self::default_for_user(),
        }
    }

    /// The path of the socket, if it is a Unix socket.
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Place::Unix(path) => Some(path),
            Place::Tcp(_) | Place::Tls(_) => None,
        }
    }

    /// The host and the port, if it is reached over TCP.
    pub fn host_and_port(&self) -> Option<(&str, u16)> {
        match &self.0 {
            Place::Unix(_) => None,
            Place::Tcp(host) | Place::Tls(host) => Some((&host.name, host.port)),
        }
    }

    /// True for a TCP address that only this machine can reach.
    pub(crate) fn is_loopback(&self) -> bool {
        match &self.0 {
            Place::Unix(_) => false,
            Place::Tcp(host) | Place::Tls(host) => host.is_loopback(),
        }
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0
    }

    /// The command that starts a daemon at this address.
    pub fn start_command(&self) -> String {
        match &self.0 {
            Place::Unix(_) => match Self::default_for_user() {
                Ok(default) if default == *self => "heeler serve".to_owned(),
                Ok(_) | Err(_) => format!("heeler serve --listen {self}"),
            },
            Place::Tcp(_) => format!("heeler serve --listen {self}"),
            Place::Tls(host) => {
                let port = host.port;
                format!("heeler serve --listen tcp:0.0.0.0:{port} --tls-cert FILE --tls-key FILE")
            }
        }
    }
}

impl Host {
    /// Parses `HOST:PORT`, where the host is a name, an IPv4 address, or an IPv6 address in brackets.
    fn parse(text: &str) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        let port: u16 = port.parse().ok().filter(|port| *port != 0)?;
        let name = match name.strip_prefix('[') {
            Some(name) => {
                let name = name.strip_suffix(']')?;
                name.parse::<std::net::Ipv6Addr>().ok()?;
                name
            }
            None => name,
        };
        let known = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let number = name.parse::<IpAddr>().is_ok();
        let usable = !name.is_empty() && name.bytes().all(known) && (number || !name.contains(':'));
        usable.then(|| Self {
            name: name.to_owned(),
            port,
        })
    }

    fn is_loopback(&self) -> bool {
        match self.name.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => self.name.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(address: &str) -> Result<Self, AddressError> {
        let given = || address.to_owned();
        let host = |rest: &str, scheme| {
            let address = given();
            Host::parse(rest).ok_or(AddressError::NoHostAndPort { address, scheme })
        };
        // `unix:///path` is how gRPC spells an absolute path in a URI.
        let path = address
            .strip_prefix("unix://")
            .or_else(|| address.strip_prefix("unix:"));
        if let Some(path) = path {
            return Self::unix(path);
        }
        if let Some(rest) = address.strip_prefix("tls:") {
            return Ok(Self(Place::Tls(host(rest, "tls")?)));
        }
        match address.strip_prefix("tcp:").map(|rest| host(rest, "tcp")) {
            Some(host) => match host? {
                host if host.is_loopback() => Ok(Self(Place::Tcp(host))),
                _ => Err(AddressError::NotLoopback { address: given() }),
            },
            None => Err(AddressError::UnknownScheme { address: given() }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
            Place::Tcp(host) => write!(f, "tcp:{host}"),
            Place::Tls(host) => write!(f, "tls:{host}"),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.contains(':') {
            true => write!(f, "[{}]:{}", self.name, self.port),
            false => write!(f, "{}:{}", self.name, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_unix_paths_are_accepted_in_both_spellings() {
        for text in ["unix:/run/x.sock", "unix:///run/x.sock"] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.path(), Some(Path::new("/run/x.sock")));
            assert_eq!(address.to_string(), "unix:/run/x.sock");
        }
    }

    #[test]
    fn hosts_are_accepted_by_name_and_by_number() {
        for (text, name) in [
            ("tls:build.example.com:7117", "build.example.com"),
            ("tls:10.0.0.1:7117", "10.0.0.1"),
            ("tls:[fe80::1]:7117", "fe80::1"),
            ("tcp:127.0.0.1:7117", "127.0.0.1"),
            ("tcp:[::1]:7117", "::1"),
            ("tcp:localhost:7117", "localhost"),
        ] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.host_and_port(), Some((name, 7117)), "{text}");
            assert_eq!(address.to_string(), text);
            assert_eq!(address.path(), None);
        }
    }

    #[test]
    fn an_address_without_host_and_port_is_refused() {
        for rest in [
            "",
            ":",
            "host",
            "host:",
            ":7117",
            "host:0",
            "host:65536",
            "host:-1",
            "//host:7117",
            "::1:7117:",
            "[::1]",
            "[host]:7117",
            "a b:7117",
            "a:b:7117",
            "u@h:7117",
        ] {
            for scheme in ["tcp", "tls"] {
                let error = format!("{scheme}:{rest}").parse::<Address>().unwrap_err();
                assert!(
                    matches!(error, AddressError::NoHostAndPort { .. }),
                    "{scheme}:{rest}: {error}"
                );
            }
        }
    }

    /// N2
    #[test]
    fn tcp_without_tls_to_another_machine_is_refused() {
        for host in ["10.0.0.1", "example.com", "0.0.0.0", "[fe80::1]"] {
            let error = format!("tcp:{host}:7117").parse::<Address>().unwrap_err();
            assert!(matches!(error, AddressError::NotLoopback { .. }), "{host}");
            assert!(error.to_string().contains("tls:"), "{error}");
        }
    }

    #[test]
    fn relative_paths_are_refused_by_name() {
        let error = "unix:run/x.sock".parse::<Address>().unwrap_err();
        assert!(matches!(error, AddressError::RelativePath { .. }));
        assert!(error.to_string().contains("run/x.sock"));
        assert!(matches!(
            "unix:".parse::<Address>(),
            Err(AddressError::RelativePath { .. })
        ));
    }

    #[test]
    fn other_schemes_are_refused_by_name() {
        for text in ["https://127.0.0.1:1", "/run/x.sock", "http://x", ""] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(
                matches!(error, AddressError::UnknownScheme { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn a_path_above_the_limit_is_refused() {
        let fits = format!("/{}", "x".repeat(MAX_PATH - 1));
        assert!(Address::unix(&fits).is_ok());
        let error = Address::unix(format!("{fits}x")).unwrap_err();
        assert!(error.to_string().contains("108 bytes"), "{error}");
        assert!(matches!(
            Address::unix("/a\0b"),
            Err(AddressError::Nul { .. })
        ));
    }

    #[test]
    fn the_start_command_names_an_address_that_is_not_the_default() {
        for text in ["unix:/nowhere/x.sock", "tcp:127.0.0.1:7117"] {
            let address: Address = text.parse().unwrap();
            let command = format!("heeler serve --listen {text}");
            assert_eq!(address.start_command(), command);
        }
    }
}
