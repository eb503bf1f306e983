//! The URLs of the receivers: those of the configuration, and those in private files.

use std::{collections::BTreeSet, fs::File, path::Path};

use super::WebhookError;
use crate::{
    config,
    service::private_file::{self, ReadError},
};

/// The most of a file that is read.
const LARGEST_FILE: usize = 1 << 20;

/// All URLs, each once.
pub(super) fn all(config: &config::Webhooks) -> Result<BTreeSet<String>, WebhookError> {
    let mut urls: BTreeSet<String> = config.urls.iter().cloned().collect();
    for path in &config.url_files {
        urls.append(&mut read(path)?);
    }
    Ok(urls)
}

/// The URLs in a file, one a line. Empty lines, and those that begin with `#`, are left out.
fn read(path: &Path) -> Result<BTreeSet<String>, WebhookError> {
    let read = File::open(path).map_err(ReadError::Io);
    let path = || path.to_owned();
    let text = match read.and_then(|file| private_file::read(file, LARGEST_FILE)) {
        Ok(text) => text,
        Err(ReadError::Io(source)) => {
            return Err(WebhookError::File {
                path: path(),
                source,
            });
        }
        Err(ReadError::NotPrivate) => return Err(WebhookError::FileNotPrivate { path: path() }),
    };
    let lines = text.lines().map(str::trim);
    let urls = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let urls: BTreeSet<String> = urls.map(str::to_owned).collect();
    match urls.is_empty() {
        true => Err(WebhookError::FileEmpty { path: path() }),
        false => Ok(urls),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// H7, N4
    #[test]
    fn urls_are_read_from_private_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("urls");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        write(
            "# chat\nhttp://localhost/a\n\n  http://localhost/b \r\n",
            0o600,
        );
        let urls: Vec<String> = read(&path).unwrap().into_iter().collect();
        assert_eq!(urls, ["http://localhost/a", "http://localhost/b"]);
        for mode in [0o640, 0o604, 0o620] {
            write("http://localhost/secret", mode);
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains("is not private"), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
        }
        write("# none\n", 0o600);
        assert!(read(&path).unwrap_err().to_string().contains("no URL"));
        fs::remove_file(&path).unwrap();
        assert!(read(&path).unwrap_err().to_string().contains("cannot read"));
    }
}
