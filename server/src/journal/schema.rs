//! The file: where it is, who may read it, what its tables are, and whether it is ours at all.
//!
//! Nothing here resets, repairs or overwrites a file that it does not understand.

use std::{
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use uuid::Uuid;

use super::{Durability, JournalError, sql};
use crate::task::IdKey;

const FILE_NAME: &str = "journal.db";
const OWNER_ONLY: u32 = 0o600;

/// "Heel": marks the file as ours, in the place that SQLite has for it.
const APPLICATION_ID: i32 = 0x4865_656c;
/// To be raised with every change of [`SCHEMA`], together with a step from the one before.
const SCHEMA_VERSION: i32 = 1;

/// Pages in the WAL at which a commit itself moves them on: 64 MiB. The writer's thread sees to it
/// long before; this is for when it cannot.
const WAL_PAGES: u32 = 16384;
/// What the file of an emptied WAL is cut to: as long as it usually gets.
const WAL_BYTES_KEPT: u32 = 32 << 20;
/// In KiB. The writer touches the ends of its tables; a reader a page of list or one batch.
const WRITER_CACHE: u32 = 1024;
const READER_CACHE: u32 = 512;
/// More than there are different statements, so that each is compiled once.
const STATEMENTS: usize = 64;

/// - A record is written once, with its event; a task points to its latest one.
/// - `events.task_seq` may be NULL: not every fact to come need be that of one task.
/// - What a finished task is found by is indexed when it ends; a live one is found in memory. So
///   the start of a task pays for no index but the one that start-up reads.
/// - `labels` holds those of finished tasks. `tail` stands last so that a record can be read without
///   it.
const SCHEMA: &str = "
CREATE TABLE journal (
    state_id TEXT NOT NULL,
    id_key INTEGER NOT NULL,
    highest_removed_seq INTEGER NOT NULL
);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task_seq INTEGER,
    format INTEGER NOT NULL,
    record TEXT NOT NULL,
    tail BLOB
);
CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    session_id TEXT NOT NULL,
    parent_id TEXT,
    revision INTEGER NOT NULL,
    created_revision INTEGER NOT NULL,
    started_revision INTEGER,
    end_revision INTEGER,
    end_state TEXT
);
CREATE INDEX tasks_live ON tasks (seq) WHERE end_revision IS NULL;
CREATE UNIQUE INDEX tasks_id ON tasks (id) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_ended ON tasks (end_revision) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_shelf ON tasks (end_state, kind, seq) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_session ON tasks (session_id, seq)
    WHERE end_revision IS NOT NULL AND session_id <> '';
CREATE INDEX tasks_parent ON tasks (parent_id, seq)
    WHERE end_revision IS NOT NULL AND parent_id IS NOT NULL;
CREATE TABLE labels (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, value, seq)
) WITHOUT ROWID;
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    body TEXT NOT NULL,
    request_id TEXT NOT NULL UNIQUE
);
";

/// What makes a state directory this one and no other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) state_id: Uuid,
    pub(super) id_key: IdKey,
}

/// Where the journal of a state directory is.
pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// The one connection that writes. Makes the file where there is none.
pub(super) fn open_writer(
    path: &Path,
    durability: Durability,
) -> Result<(Connection, Identity), JournalError> {
    make_private(path).map_err(|source| JournalError::Open {
        path: path.into(),
        source,
    })?;
    let mut connection = Connection::open_with_flags(path, OpenFlags::default())
        .map_err(JournalError::storage("opening the file"))?;
    let origin = origin(&connection, path)?;
    let doing = || JournalError::storage("preparing the file");
    configure(&connection, durability).map_err(doing())?;
    if origin == Origin::Empty {
        create(&mut connection).map_err(doing())?;
    }
    let identity = connection
        .query_row(sql::IDENTITY, [], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))
        })
        .map_err(doing())?;
    let state_id = identity
        .0
        .parse()
        .map_err(|_| JournalError::Foreign { path: path.into() })?;
    Ok((
        connection,
        Identity {
            state_id,
            id_key: IdKey(identity.1.cast_unsigned()),
        },
    ))
}

/// One more connection that reads.
pub(super) fn open_reader(path: &Path) -> Result<Connection, JournalError> {
    open_another(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// The connection that moves the WAL into the main file, and writes nothing else.
pub(super) fn open_checkpointer(path: &Path) -> Result<Connection, JournalError> {
    open_another(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open_another(path: &Path, access: OpenFlags) -> Result<Connection, JournalError> {
    let connect = || {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL;
             PRAGMA cache_size = -{READER_CACHE};
             PRAGMA temp_store = MEMORY;"
        ))?;
        Ok(connection)
    };
    connect().map_err(JournalError::storage("opening the file once more"))
}

/// SQLite would create the file by the umask; its companions take the mode of the file. The
/// descriptor is closed before SQLite opens its own: closing it later would drop SQLite's locks.
fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(OWNER_ONLY);
    let mode = options.open(path)?.metadata()?.permissions().mode() & 0o777;
    if mode != OWNER_ONLY {
        fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// Nothing has ever been committed to it.
    Empty,
    /// This version wrote it, or one whose files it can read.
    Ours,
}

fn origin(connection: &Connection, path: &Path) -> Result<Origin, JournalError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let marks = || {
        let tables = connection.query_row(sql::TABLE_COUNT, [], |row| row.get::<_, i64>(0))?;
        Ok((pragma("application_id")?, pragma("user_version")?, tables))
    };
    match marks() {
        Ok((0, 0, 0)) => Ok(Origin::Empty),
        Ok((APPLICATION_ID, SCHEMA_VERSION, _)) => Ok(Origin::Ours),
        Ok((APPLICATION_ID, found, _)) if found > SCHEMA_VERSION => Err(JournalError::Newer {
            path: path.into(),
            found,
            known: SCHEMA_VERSION,
        }),
        Ok(_) => Err(JournalError::Foreign { path: path.into() }),
        Err(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == ErrorCode::NotADatabase =>
        {
            Err(JournalError::Foreign { path: path.into() })
        }
        Err(source) => Err(JournalError::Storage {
            operation: "examining the file",
            source,
        }),
    }
}

/// In WAL mode a commit is a write to the page cache, which outlives the process. NORMAL syncs
/// before and after a checkpoint only: a power cut may take the latest facts, never the file. FULL
/// syncs each commit too.
fn configure(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.execute_batch(&format!(
        "PRAGMA journal_mode = WAL;
         PRAGMA synchronous = {synchronous};
         PRAGMA wal_autocheckpoint = {WAL_PAGES};
         PRAGMA journal_size_limit = {WAL_BYTES_KEPT};
         PRAGMA cache_size = -{WRITER_CACHE};
         PRAGMA temp_store = MEMORY;"
    ))
}

/// All or nothing, marks included: a crash in between leaves an empty file.
fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(SCHEMA)?;
    transaction.execute(sql::NEW_IDENTITY, [Uuid::now_v7().to_string()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}
