//! The file: where it is, who may read it, how it is opened, and whether it is ours at all.
//!
//! Nothing here resets, repairs or overwrites a file that it does not understand.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::{
    Boot, Durability, JournalError,
    epoch::{self, EpochRecord},
    schema::{self, APPLICATION_ID, Identity, VERSION},
    sql,
    wal::{self, Soundness},
};
use crate::task::IdKey;

const FILE_NAME: &str = "journal.db";
pub(super) const OWNER_ONLY: u32 = 0o600;

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

/// Where the journal of a state directory is.
pub(super) fn file(dir: &Path) -> PathBuf {
    dir.join(FILE_NAME)
}

/// Where what was committed last is, until it is moved into the file.
pub(super) fn wal(file: &Path) -> PathBuf {
    let mut name = OsString::from(file);
    name.push("-wal");
    name.into()
}

/// Whether a file is on a disk that nobody may write to now.
pub(super) fn takes_no_writes(path: &Path) -> bool {
    let opened = OpenOptions::new().write(true).open(path);
    opened.is_err_and(|error| error.kind() == io::ErrorKind::ReadOnlyFilesystem)
}

/// Whether there is no journal: no file, or an empty one, as a crash in the first moment leaves it.
pub(super) fn is_missing(path: &Path) -> bool {
    match fs::metadata(path) {
        Ok(found) => found.is_file() && found.len() == 0 && !wal(path).exists(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The one connection that writes. Makes the file where there is none.
pub(super) fn open_writer(
    path: &Path,
    durability: Durability,
    boot: Boot,
) -> Result<(Connection, Identity), JournalError> {
    make_private(path)?;
    let soundness = wal::see_to(path)?;
    let mut connection = Connection::open_with_flags(path, OpenFlags::default())
        .map_err(JournalError::storage("opening the file"))?;
    let origin = origin(&connection, path)?;
    let doing = || JournalError::storage("preparing the file");
    configure(&connection, durability).map_err(doing())?;
    if origin == Origin::Empty {
        schema::create(&mut connection).map_err(doing())?;
    }
    let (mut identity, record) = identity(&connection, path)?;
    identity.epoch = epoch::open(&connection, record, soundness, durability, boot);
    match soundness {
        Soundness::Whole => {}
        Soundness::CutShort => empty_wal(&connection),
    }
    Ok((connection, identity))
}

/// What could not be used must not be met again, behind what is written next.
fn empty_wal(connection: &Connection) {
    if let Err(error) = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())) {
        tracing::warn!(%error, "the rest of the damaged WAL stays, and will be found again");
    }
}

/// Reads the identity of the state directory.
fn identity(connection: &Connection, path: &Path) -> Result<(Identity, EpochRecord), JournalError> {
    let row = |row: &Row<'_>| {
        let id = |column| row.get::<_, Option<String>>(column);
        Ok((id(0)?, row.get::<_, i64>(1)?, id(2)?, id(3)?))
    };
    let (directory_id, id_key, epoch, unsynced_boot) = connection
        .query_row(sql::IDENTITY, [], row)
        .map_err(JournalError::storage(
            "reading the identity of the state directory",
        ))?;
    let id = |text: String| {
        let foreign = |_| JournalError::Foreign { path: path.into() };
        text.parse().map_err(foreign)
    };
    let record = EpochRecord {
        epoch: id(epoch.unwrap_or_default())?,
        unsynced_boot: unsynced_boot.map(id).transpose()?,
    };
    let identity = Identity {
        directory_id: id(directory_id.unwrap_or_default())?,
        epoch: record.epoch,
        id_key: IdKey(id_key.cast_unsigned()),
    };
    Ok((identity, record))
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
fn make_private(path: &Path) -> Result<(), JournalError> {
    let open = || -> io::Result<_> {
        let mut options = OpenOptions::new();
        options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(OWNER_ONLY);
        let found = options.open(path)?.metadata()?;
        if !found.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        let dir = fs::metadata(path.parent().unwrap_or(path))?;
        if found.uid() != dir.uid() {
            let (owner, own) = (found.uid(), dir.uid());
            return Err(io::Error::other(format!(
                "it belongs to uid {owner}, and its directory to uid {own}"
            )));
        }
        if found.permissions().mode() & 0o777 != OWNER_ONLY {
            fs::set_permissions(path, Permissions::from_mode(OWNER_ONLY))?;
        }
        Ok(found.len())
    };
    let length = open().map_err(|source| JournalError::Open {
        path: path.into(),
        source,
    })?;
    // SQLite takes an empty file for a new one, and would throw its WAL away.
    match length == 0 && fs::metadata(wal(path)).is_ok_and(|wal| wal.len() > 0) {
        true => Err(JournalError::Emptied { path: path.into() }),
        false => Ok(()),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// Nothing has ever been committed to it.
    Empty,
    /// This version wrote it.
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
        Ok((APPLICATION_ID, VERSION, _)) => Ok(Origin::Ours),
        Ok((APPLICATION_ID, found, _)) if found > VERSION => Err(JournalError::Newer {
            path: path.into(),
            found,
            known: VERSION,
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
