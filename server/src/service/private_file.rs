//! Files that only the server's user may read.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

/// Writes the file whole or not at all, even across a power cut, with a line break behind the text.
pub(super) fn write(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("new");
    match fs::remove_file(&unfinished) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&unfinished)?;
    file.write_all(text.as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    fs::rename(&unfinished, path)
}
