//! Opening the file: one connection that writes, one that checkpoints, any number that read.

use std::{
    fs::{self, OpenOptions, Permissions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use rusqlite::{Connection, ErrorCode, OpenFlags, Row};

use super::{
    epoch::{self, EpochRecord},
    has_commits, keep_wal_on_close,
    schema::{self, APPLICATION_ID, Identity, VERSION},
    truncate_wal, wal,
};
use crate::{
    journal::{Boot, Durability, JournalError, request::RequestKey, sql},
    task::IdKey,
};

const OWNER_ONLY: u32 = 0o600;

/// Pages in the WAL at which a commit itself moves them into the file: 64 MiB. The writer thread does
/// it long before; this is for when it cannot.
const WAL_PAGES: u32 = 16384;
/// The size to which the file of an emptied WAL is cut: as long as it usually gets.
const WAL_BYTES_KEPT: u32 = 32 << 20;
/// In KiB. The writer touches the ends of its tables; a reader touches one page of a list or one batch.
const WRITER_CACHE: u32 = 1024;
const READER_CACHE: u32 = 512;
/// More than there are different statements, so each is compiled once.
const STATEMENTS: usize = 64;

/// Opens the one connection that writes. Creates the file if there is none.
pub(in crate::journal) fn open_writer(
    path: &Path,
    durability: Durability,
    boot: Boot,
) -> Result<(Connection, Identity), JournalError> {
    make_private(path)?;
    let soundness = wal::check(path)?;
    let mut connection = Connection::open_with_flags(path, OpenFlags::default())
        .map_err(JournalError::storage("opening the file"))?;
    let origin = origin(&connection, path)?;
    let failed = || JournalError::storage("preparing the file");
    configure(&connection, durability).map_err(failed())?;
    keep_wal_on_close(&connection).map_err(failed())?;
    if origin == Origin::Empty {
        schema::create(&mut connection).map_err(failed())?;
        // The identity must not depend on the WAL: damage to it could cost the key of all task ids.
        truncate_wal(&connection).map_err(failed())?;
    }
    let (mut identity, record) = identity(&connection, path)?;
    identity.epoch = epoch::open(&connection, record, soundness, durability, boot);
    // The unusable rest of a damaged WAL must not be found again, behind newer commits.
    if soundness == wal::Soundness::CutShort
        && let Err(error) = truncate_wal(&connection)
    {
        tracing::warn!(%error, "could not empty the damaged WAL; its damage will be reported again");
    }
    Ok((connection, identity))
}

/// Opens one more connection that reads.
pub(in crate::journal) fn open_reader(path: &Path) -> Result<Connection, JournalError> {
    open_another(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
}

/// Opens the connection that moves the WAL into the file, and writes nothing else.
pub(in crate::journal) fn open_checkpointer(path: &Path) -> Result<Connection, JournalError> {
    open_another(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open_another(path: &Path, access: OpenFlags) -> Result<Connection, JournalError> {
    let connect = || {
        let flags = access | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        keep_wal_on_close(&connection)?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL;
             PRAGMA cache_size = -{READER_CACHE};
             PRAGMA temp_store = MEMORY;"
        ))?;
        Ok(connection)
    };
    connect().map_err(JournalError::storage("opening another connection"))
}

/// Makes sure that the file exists, belongs to the owner of its directory, and is readable by that
/// owner alone. SQLite would create it by the umask; its companion files take its mode.
fn make_private(path: &Path) -> Result<(), JournalError> {
    let length = private_length(path).map_err(|source| JournalError::Open {
        path: path.into(),
        source,
    })?;
    // SQLite takes an empty file for a new one, and would throw its WAL away.
    let wal = super::wal(path);
    match length == 0 && has_commits(&wal) {
        true => Err(JournalError::Emptied { path: path.into() }),
        false => Ok(()),
    }
}

/// Closes its descriptor before SQLite opens one: closing it later would drop SQLite's locks.
fn private_length(path: &Path) -> io::Result<u64> {
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
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    /// Nothing was ever committed to the file.
    Empty,
    /// The file has the tables of this version.
    Journal,
}

fn origin(connection: &Connection, path: &Path) -> Result<Origin, JournalError> {
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    let marks = || {
        let tables = connection.query_row(sql::TABLE_COUNT, [], |row| row.get::<_, i64>(0))?;
        Ok((pragma("application_id")?, pragma("user_version")?, tables))
    };
    match marks() {
        Ok((0, 0, 0)) => Ok(Origin::Empty),
        Ok((APPLICATION_ID, VERSION, _)) => Ok(Origin::Journal),
        Ok((APPLICATION_ID, found, _)) if found > VERSION => Err(JournalError::Newer {
            path: path.into(),
            found,
            known: VERSION,
        }),
        Ok((APPLICATION_ID, found @ 1.., _)) => Err(JournalError::Older {
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

/// In WAL mode a commit is a write to the page cache, which outlives the process. NORMAL syncs before
/// and after a checkpoint only: a power cut may take the latest facts, never the file. FULL syncs each
/// commit, too.
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

fn identity(connection: &Connection, path: &Path) -> Result<(Identity, EpochRecord), JournalError> {
    let row = |row: &Row<'_>| {
        let id = |column| row.get::<_, Option<String>>(column);
        let key = row.get::<_, Vec<u8>>(4)?;
        Ok((id(0)?, row.get::<_, i64>(1)?, id(2)?, id(3)?, key))
    };
    let (directory_id, id_key, epoch, unsynced_boot, request_key) = connection
        .query_row(sql::IDENTITY, [], row)
        .map_err(JournalError::storage("reading the identity"))?;
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
        request_key: RequestKey::new(&request_key),
    };
    Ok((identity, record))
}
