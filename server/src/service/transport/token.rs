//! The token that callers over TCP present: created once, kept in a private file, compared in constant
//! time. Its text never appears in a log, an error or an event.

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
    fs::File,
    io,
    path::{Path, PathBuf},
};

use heeler_proto::v1::ErrorReason;
use http::{HeaderMap, header::AUTHORIZATION};
use subtle::ConstantTimeEq;
use tonic::Code;

use crate::{
    process::own_uid,
    service::{
        private_file::{self, ReadError},
        wire::refusal::Refusal,
    },
    task::Authority,
};

/// The file's name in the state directory.
const FILE: &str = "token";
/// Random bytes of a new token, which is written as twice as many hexadecimal digits.
const RANDOM_BYTES: usize = 32;
/// An operator's own token may be shorter, but not so short that it can be guessed.
const SHORTEST: usize = 32;
const LONGEST: usize = 512;

/// The reason why there is no usable token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("cannot {operation} the {} {}: {source}", purpose.file(), path.display())]
    Io {
        purpose: Purpose,
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// Other users may know the token.
    #[error(
        "the {} {} is not private to uid {}: {}",
        purpose.file(), path.display(), own_uid(), purpose.replacement()
    )]
    NotPrivate { purpose: Purpose, path: PathBuf },
    /// The content is not a token.
    #[error(
        "the {} {} must contain {SHORTEST} to {LONGEST} visible ASCII characters: {}",
        purpose.file(), path.display(), purpose.replacement()
    )]
    Unusable { purpose: Purpose, path: PathBuf },
}

/// The use of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Callers present it.
    Calls,
    /// It signs webhooks: their receivers have it too.
    Webhooks,
}

impl Purpose {
    fn file(self) -> &'static str {
        match self {
            Self::Calls => "token file",
            Self::Webhooks => "secret file of the webhooks",
        }
    }

    /// The way to another token.
    fn replacement(self) -> &'static str {
        match self {
            Self::Calls => "remove it, and the server creates a new one",
            Self::Webhooks => {
                "write a new secret into a file with the mode 0600, and give it to the receivers"
            }
        }
    }
}

#[derive(Clone)]
pub(crate) struct Token(Box<[u8]>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// The path of the token file.
    pub(crate) fn file(state_dir: &Path) -> PathBuf {
        state_dir.join(FILE)
    }

    /// Reads the token of this state directory, or creates it. The caller has the directory's lock.
    pub(crate) fn of(state_dir: &Path) -> Result<Self, TokenError> {
        Self::at(Self::file(state_dir), Purpose::Calls)
    }

    /// Reads the token in a file, or creates it.
    pub(crate) fn at(path: PathBuf, purpose: Purpose) -> Result<Self, TokenError> {
        match File::open(&path) {
            Ok(file) => Self::read(file, path, purpose),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::create(path, purpose),
            Err(source) => Err(TokenError::Io {
                purpose,
                operation: "open",
                path,
                source,
            }),
        }
    }

    fn read(file: File, path: PathBuf, purpose: Purpose) -> Result<Self, TokenError> {
        let text = match private_file::read(file, LONGEST + 2) {
            Ok(text) => text,
            Err(ReadError::NotPrivate) => return Err(TokenError::NotPrivate { purpose, path }),
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(TokenError::Unusable { purpose, path });
            }
            Err(ReadError::Io(source)) => {
                return Err(TokenError::Io {
                    purpose,
                    operation: "read",
                    path,
                    source,
                });
            }
        };
        let token = text.trim_end().as_bytes();
        let usable = (SHORTEST..=LONGEST).contains(&token.len());
        if !usable || !token.iter().all(u8::is_ascii_graphic) {
            return Err(TokenError::Unusable { purpose, path });
        }
        Ok(Self(token.into()))
    }

    fn create(path: PathBuf, purpose: Purpose) -> Result<Self, TokenError> {
        let create = || -> io::Result<Self> {
            let token = Self::random()?;
            private_file::write(&path, &token.text())?;
            Ok(token)
        };
        let operation = "create";
        create().map_err(|source| TokenError::Io {
            purpose,
            operation,
            path: path.clone(),
            source,
        })
    }

    /// A token that no other process knows.
    pub(crate) fn random() -> io::Result<Self> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        let mut text = String::with_capacity(2 * RANDOM_BYTES);
        for byte in bytes {
            write!(text, "{byte:02x}").map_err(io::Error::other)?;
        }
        Ok(Self(text.into_bytes().into()))
    }

    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.0)
    }

    /// Accepts a call that presents this token, or that of a live task, which `task` looks up.
    pub(crate) fn check(
        &self,
        headers: &HeaderMap,
        task: impl FnOnce(&str) -> Option<Authority>,
    ) -> Result<Authority, Refusal> {
        let Some(header) = headers.get(AUTHORIZATION) else {
            return Err(refused(
                "the call has no token: send `authorization: Bearer TOKEN` with the content of the server's token file",
            ));
        };
        let Some(token) = bearer(header.as_bytes()) else {
            return Err(refused(
                "the call has no token: `authorization` must be `Bearer TOKEN`",
            ));
        };
        if bool::from(self.0.ct_eq(token)) {
            return Ok(Authority::User);
        }
        let of_task = str::from_utf8(token).ok().and_then(task);
        of_task.ok_or_else(|| {
            refused("the token of the call is neither the server's nor that of a live task")
        })
    }
}

fn refused(message: &str) -> Refusal {
    Refusal::new(Code::Unauthenticated, ErrorReason::TokenRefused, message)
}

/// The token after the scheme, whose case does not matter.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    const SCHEME: &[u8] = b"bearer ";
    let (scheme, token) = value.split_at_checked(SCHEME.len())?;
    scheme
        .eq_ignore_ascii_case(SCHEME)
        .then(|| token.trim_ascii())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt},
    };

    use http::HeaderValue;

    use super::*;

    fn headers(value: &str) -> HeaderMap {
        let value = HeaderValue::from_str(value).unwrap();
        HeaderMap::from_iter([(AUTHORIZATION, value)])
    }

    fn text(dir: &Path) -> String {
        fs::read_to_string(Token::file(dir)).unwrap()
    }

    /// N2
    #[test]
    fn a_token_is_created_once_and_private() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::of(dir.path()).unwrap();
        let first = text(dir.path());
        assert_eq!(first.trim().len(), 64);
        let mode = fs::metadata(Token::file(dir.path())).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert_eq!(Token::of(dir.path()).unwrap().0, token.0);
        assert_eq!(text(dir.path()), first);
        let other = tempfile::tempdir().unwrap();
        Token::of(other.path()).unwrap();
        assert_ne!(text(other.path()), first);
    }

    /// N2
    #[test]
    fn only_the_whole_token_after_the_scheme_is_accepted() {
        let token = Token(b"abc".as_slice().into());
        for good in ["Bearer abc", "bearer abc", "BEARER  abc "] {
            assert!(token.check(&headers(good), |_| None).is_ok(), "{good}");
        }
        for bad in [
            "",
            "abc",
            "Bearer",
            "Bearer ",
            "Bearer ab",
            "Bearer abcd",
            "Bearer abC",
            "Basic abc",
        ] {
            assert!(token.check(&headers(bad), |_| None).is_err(), "{bad}");
        }
        assert!(token.check(&HeaderMap::new(), |_| None).is_err());
    }

    /// N2
    #[test]
    fn a_file_that_others_can_read_or_that_contains_no_token_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = Token::file(dir.path());
        for (content, mode) in [
            (b"x".repeat(64), 0o640),
            (b"short".to_vec(), 0o600),
            (Vec::new(), 0o600),
            (b"x".repeat(LONGEST + 1), 0o600),
            (
                b"with a space, and long enough to be a token".to_vec(),
                0o600,
            ),
            (vec![0xff; 64], 0o600),
        ] {
            fs::write(&path, &content).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let error = Token::of(dir.path()).unwrap_err().to_string();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
            assert_eq!(fs::read(&path).unwrap(), content, "left as it is");
        }
        fs::write(&path, "y".repeat(40)).unwrap();
        Token::of(dir.path()).unwrap();
    }

    /// N4
    #[test]
    fn the_debug_text_does_not_contain_the_token() {
        let token = Token(b"secret".as_slice().into());
        assert!(!format!("{token:?}").contains("secret"));
    }
}
