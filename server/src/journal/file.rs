//! The file `journal.db`: where it is, who may read it, how it is opened, and whether it is a journal.
//!
//! Nothing here resets, repairs or overwrites a file that it does not understand.

pub(super) mod epoch;
mod open;
mod schema;
mod wal;

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use rusqlite::{Connection, config::DbConfig};

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
pub(super) fn wal_index(path: &Path) -> PathBuf {
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
        Ok(found) => found.is_file() && found.len() == 0 && !has_commits(&wal(path)),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// Reports whether a file is on a file system that has become read-only.
pub(super) fn is_on_read_only_disk(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Moves the whole WAL into the file, and empties it.
fn truncate_wal(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// Moves the whole WAL into the file, and leaves a WAL of up to `kept` bytes without commits: one that
/// were deleted would give its space to others on a full disk. `last` writes the last commit.
pub(super) fn retire_wal(
    connection: &Connection,
    path: &Path,
    kept: u64,
    last: impl FnOnce(),
) -> rusqlite::Result<()> {
    let limit = i64::try_from(kept).unwrap_or(i64::MAX);
    connection.pragma_update_and_check(None, "journal_size_limit", limit, |_| Ok(()))?;
    restart_wal(connection)?;
    // Begins the WAL anew, which cuts its file.
    last();
    if restart_wal(connection)? == Moved::All
        && let Err(error) = erase_header(&wal(path))
    {
        tracing::warn!(%error, "the WAL keeps commits that the journal has, too");
    }
    Ok(())
}

/// The result of moving the WAL into the file.
#[derive(Debug, PartialEq, Eq)]
enum Moved {
    All,
    /// A reader still needs the rest.
    Some,
}

/// Moves the WAL into the file, so that the next commit begins it anew.
fn restart_wal(connection: &Connection) -> rusqlite::Result<Moved> {
    connection.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| {
        let (all, moved) = (row.get::<_, i64>(1)?, row.get::<_, i64>(2)?);
        Ok(if moved < all { Moved::Some } else { Moved::All })
    })
}

/// Takes the place of the header of a WAL without commits. SQLite ignores such a WAL, and a header that
/// was lost to a hole looks different.
pub(super) const RETIRED_HEADER: &[u8; 32] = b"Heeler has moved every commit. \n";

/// Makes a WAL one without commits: they would count again for a file that is restored beside it.
fn erase_header(wal: &Path) -> io::Result<()> {
    let wal = OpenOptions::new().write(true).open(wal)?;
    wal.write_all_at(RETIRED_HEADER, 0)
}

/// Reports whether a WAL may have commits.
fn has_commits(wal: &Path) -> bool {
    let mut header = [0; RETIRED_HEADER.len()];
    let read = File::open(wal).and_then(|wal| wal.read_exact_at(&mut header, 0));
    read.is_ok() && header != *RETIRED_HEADER
}

/// Has SQLite leave the WAL where it is when the last connection is closed.
fn keep_wal_on_close(connection: &Connection) -> rusqlite::Result<()> {
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .map(drop)
}
