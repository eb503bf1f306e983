//! The file `journal.db`: where it is, who may read it, how it is opened, and whether it is a journal.
//!
//! Nothing here resets, repairs or overwrites a file that it does not understand.

pub(super) mod epoch;
mod open;
mod schema;
mod wal;

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use rusqlite::Connection;

pub(super) use open::{open_checkpointer, open_reader, open_writer};
pub(super) use schema::Identity;
#[cfg(test)]
pub(super) use schema::VERSION;

/// The journal's file in a state directory.
pub(super) fn path(state_dir: &Path) -> PathBuf {
    state_dir.join("journal.db")
}

/// The WAL of a file: the latest commits, until they are moved into the file.
pub(super) fn wal(path: &Path) -> PathBuf {
    with_suffix(path, "-wal")
}

/// SQLite's index of the WAL, shared between processes.
fn wal_index(path: &Path) -> PathBuf {
    with_suffix(path, "-shm")
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(suffix);
    name.into()
}

/// Reports whether there is no journal: no file, or an empty one, as a crash during creation leaves it.
pub(super) fn is_missing(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => found.is_file() && found.len() == 0 && !wal(path).exists(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Reports whether a file is on a file system that has become read-only.
pub(super) fn is_on_read_only_disk(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Moves the whole WAL into the file, and empties it.
pub(super) fn truncate_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}
