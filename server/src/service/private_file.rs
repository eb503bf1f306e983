//! Files that only the server's user may read.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use crate::process::own_uid;

/// The reason why a file cannot be read.
#[derive(Debug)]
pub(super) enum ReadError {
    Io(io::Error),
    /// Other users may know or change the content.
    NotPrivate,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Reads a file of the server's user that no other user may read or write, up to a number of bytes.
pub(super) fn read(file: File, most: usize) -> Result<String, ReadError> {
    let found = file.metadata()?;
    if found.uid() != own_uid() || found.mode() & 0o077 != 0 {
        return Err(ReadError::NotPrivate);
    }
    let mut text = String::new();
    file.take(most as u64).read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the file whole or not at all, even across a power cut, with a line break behind the text.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = beside(path)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    let written = (|| {
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        // The first error is the one to report.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// A path in the same directory that no other file has.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = OsString::from(path);
    name.push(format!(".{:016x}.new", getrandom::u64()?));
    Ok(name.into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// N4
    #[test]
    fn writing_a_file_leaves_every_other_file_alone() {
        let dir = tempfile::tempdir().unwrap();
        let others = ["secret.new", "secret", "secret.txt.new", "secret.new.new"];
        for name in others {
            fs::write(dir.path().join(name), name).unwrap();
        }
        for text in ["first", "second"] {
            write(&dir.path().join("secret.txt"), text).unwrap();
        }
        for name in others {
            assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), name);
        }
        let path = dir.path().join("secret.txt");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), others.len() + 1);
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let taken = dir.path().join("taken");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, "text").is_err());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
