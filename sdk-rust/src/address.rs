//! Where a daemon listens: parsed once, so that no later code meets a bad address. It opens nothing.

use std::{
    env, fmt,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    str::FromStr,
};

use crate::paths::{self, PathError};

/// What a socket address has room for, less its closing NUL.
const MAX_PATH: usize = 107;

/// The address of a daemon: `unix:` and the absolute path of its socket.
///
/// ```
/// use heeler_client::Address;
///
/// let address: Address = "unix:/run/heeler.sock".parse().unwrap();
/// assert_eq!(address.path().to_str(), Some("/run/heeler.sock"));
/// assert!("unix:heeler.sock".parse::<Address>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    path: PathBuf,
}

/// Why an address cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AddressError {
    /// It does not begin with `unix:`.
    #[error("`{address}` is no address: write unix:/absolute/path")]
    UnknownScheme {
        /// What was given.
        address: String,
    },
    /// Its path depends on where one stands.
    #[error("the socket path `{}` is not absolute: write unix:/absolute/path", path.display())]
    RelativePath {
        /// What was given.
        path: PathBuf,
    },
    /// Its path does not fit the kernel's structure.
    #[error("the socket path `{}` has {} bytes, and at most {MAX_PATH} fit", path.display(), path.as_os_str().len())]
    PathTooLong {
        /// What was given.
        path: PathBuf,
    },
    /// Its path has a NUL in it.
    #[error("the socket path {path:?} contains a NUL")]
    Nul {
        /// What was given.
        path: PathBuf,
    },
    /// The environment has bytes that are no text.
    #[error("{} is not valid UTF-8", Address::ENV)]
    NotUnicode,
    /// There is no default to fall back on.
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
        Ok(Self { path })
    }

    /// The calling user's own socket, whatever the environment says of another.
    pub fn default_for_user() -> Result<Self, AddressError> {
        Self::unix(paths::default_socket()?)
    }

    /// What `HEELER_ADDR` says; none if it is unset or empty.
    pub fn from_env() -> Result<Option<Self>, AddressError> {
        match env::var(Self::ENV) {
            Ok(address) if address.is_empty() => Ok(None),
            Ok(address) => address.parse().map(Some),
            Err(env::VarError::NotPresent) => Ok(None),
            Err(env::VarError::NotUnicode(_)) => Err(AddressError::NotUnicode),
        }
    }

    /// What `HEELER_ADDR` says, else the user's own socket.
    pub fn from_env_or_default() -> Result<Self, AddressError> {
        match Self::from_env()? {
            Some(address) => Ok(address),
            None => Self::default_for_user(),
        }
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command that would start a daemon here.
    pub fn start_command(&self) -> String {
        match Self::default_for_user() {
            Ok(default) if default == *self => "heeler serve".to_owned(),
            Ok(_) | Err(_) => format!("heeler serve --listen {self}"),
        }
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(address: &str) -> Result<Self, AddressError> {
        // `unix:///path` is how gRPC spells an absolute path in a URI.
        let path = address
            .strip_prefix("unix://")
            .or_else(|| address.strip_prefix("unix:"));
        match path {
            Some(path) => Self::unix(path),
            None => Err(AddressError::UnknownScheme {
                address: address.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unix:{}", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_unix_paths_are_taken_in_both_spellings() {
        for text in ["unix:/run/x.sock", "unix:///run/x.sock"] {
            let address: Address = text.parse().unwrap();
            assert_eq!(address.path(), Path::new("/run/x.sock"));
            assert_eq!(address.to_string(), "unix:/run/x.sock");
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
        for text in ["tcp://127.0.0.1:1", "/run/x.sock", "http://x", ""] {
            let error = text.parse::<Address>().unwrap_err();
            assert!(
                matches!(error, AddressError::UnknownScheme { .. }),
                "{text}"
            );
        }
    }

    #[test]
    fn the_longest_path_that_fits_is_taken_and_one_more_byte_is_not() {
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
    fn another_address_is_named_in_its_start_command() {
        let address: Address = "unix:/nowhere/x.sock".parse().unwrap();
        assert_eq!(
            address.start_command(),
            "heeler serve --listen unix:/nowhere/x.sock"
        );
    }
}
