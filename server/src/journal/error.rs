//! The journal's errors.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

use super::file;
use crate::task::{EventKind, Revision, TaskId};

/// A failure of the journal. In each case nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file could not be created or reached.
    #[error("cannot open the journal {path}")]
    Open { path: PathBuf, source: io::Error },

    /// The file is not a journal. It was left as it is.
    #[error("{path} is not a Heeler journal, or its first page is damaged")]
    Foreign { path: PathBuf },

    /// The file was written by a later version. It was left as it is.
    #[error(
        "{path} has schema version {found}, and this server knows none above {known}: use a newer server"
    )]
    Newer {
        path: PathBuf,
        found: i32,
        known: i32,
    },

    /// The file was written by an earlier version, which no release had. It was left as it is.
    #[error(
        "{path} has schema version {found} of an earlier build, and this server knows only {known}: \
         move it and the tasks directory away to start over"
    )]
    Older {
        path: PathBuf,
        found: i32,
        known: i32,
    },

    /// The file is empty, but its WAL is not. Both were left as they are.
    #[error("{path} was emptied, only its WAL is left: restore a backup of the file")]
    Emptied { path: PathBuf },

    /// The WAL is damaged, and the file has some of the pages behind the damage. Both were left as they
    /// are.
    #[error(
        "the WAL of the journal {path} is damaged at frame {frame}, and some of the pages behind it were \
         moved into the file: restore a backup of both, or move them and the tasks directory away to \
         start over"
    )]
    Mixed { path: PathBuf, frame: u32 },

    /// The file is a journal, but the part that has to be read first is damaged. It was left as it is.
    #[error(
        "the journal {path} is damaged: restore a backup, or move it and the tasks directory away to \
         start over"
    )]
    Corrupt {
        path: PathBuf,
        source: rusqlite::Error,
    },

    /// SQLite could not open the file.
    #[error("cannot open the journal {path}: {operation} failed")]
    Unopened {
        path: PathBuf,
        operation: &'static str,
        source: rusqlite::Error,
    },

    /// SQLite failed: the disk is full, broken or gone. The operation may work the next time.
    #[error("the journal failed while {operation}")]
    Storage {
        operation: &'static str,
        source: rusqlite::Error,
    },

    /// The disk is full: the space that is left is reserved for the stops and ends of tasks.
    #[error("the disk is full: the rest is reserved for the ends of tasks")]
    Reserved,

    /// The file with the request of a waiting task could not be used. The operation may work the next time.
    #[error("cannot {operation} the request of a waiting task")]
    Request {
        operation: &'static str,
        source: io::Error,
    },

    /// The file system is read-only. The operation may work the next time.
    #[error("the journal cannot be written: {operation} failed")]
    ReadOnly {
        operation: &'static str,
        source: rusqlite::Error,
    },

    /// The journal accepts no more facts.
    #[error("the journal is closed")]
    Closed,

    /// The event cannot follow the task's latest one: the task was created before or never, or it has
    /// ended.
    #[error("{kind:?} cannot be the next event of {id}")]
    Misplaced { id: TaskId, kind: EventKind },

    /// Another task was created with this request id.
    #[error("request id {request_id:?} is taken")]
    RequestTaken { request_id: String },

    /// The task has text that cannot be encoded, e.g. a path that is not UTF-8.
    #[error("cannot encode the record of {id}")]
    Unwritable {
        id: TaskId,
        source: serde_json::Error,
    },

    /// Only finished tasks can be removed.
    #[error("{id} is not finished")]
    NotFinished { id: TaskId },

    /// No task has this id, or its task was removed.
    #[error("there is no task {id}")]
    NotFound { id: TaskId },

    /// The record at a revision cannot be read any more.
    #[error("the record at revision {} is damaged", revision.0)]
    Damaged {
        revision: Revision,
        source: RecordError,
    },
}

/// A failure to read events.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// The revision was pruned, or is not known yet.
    #[error("events can be read from revision {} to {}", oldest.0, newest.0)]
    OutOfRange { oldest: Revision, newest: Revision },

    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A failure to read a record.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("the record does not parse")]
    Malformed(#[from] serde_json::Error),

    #[error("record format {0} is unknown")]
    UnknownFormat(i64),

    #[error("event kind {0:?} is unknown")]
    UnknownKind(String),

    #[error("a column has a value of the wrong type")]
    MalformedRow(#[from] rusqlite::types::FromSqlError),

    /// The row, or the page that it is on, is damaged.
    #[error("the row cannot be read")]
    Unreadable(#[from] rusqlite::Error),

    #[error("the record is not that of a task")]
    NoTask,

    #[error("the record is missing")]
    Missing,

    /// The row or the record of a task is that of another.
    #[error("the record is that of another task")]
    OfAnotherTask,
}

/// The state of the disk, as far as a failure tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskTrouble {
    Full,
    ReadOnly,
    Damaged,
    Other,
}

impl JournalError {
    /// The trouble with the disk, if that is the reason.
    pub(crate) fn disk_trouble(&self) -> Option<DiskTrouble> {
        match self {
            Self::Storage { source, .. } | Self::Unopened { source, .. } => Some(trouble(source)),
            Self::Reserved => Some(DiskTrouble::Full),
            Self::Request { source, .. } => Some(trouble_with_file(source.kind())),
            Self::ReadOnly { .. } => Some(DiskTrouble::ReadOnly),
            Self::Corrupt { .. } | Self::Emptied { .. } | Self::Mixed { .. } => {
                Some(DiskTrouble::Damaged)
            }
            Self::Open { .. }
            | Self::Foreign { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Closed
            | Self::Misplaced { .. }
            | Self::RequestTaken { .. }
            | Self::Unwritable { .. }
            | Self::NotFinished { .. }
            | Self::NotFound { .. }
            | Self::Damaged { .. } => None,
        }
    }

    /// For `map_err`: SQLite failed in this operation.
    pub(super) fn storage(operation: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Storage { operation, source }
    }

    /// For `map_err`: a failure of SQLite happened while this file was being opened.
    pub(super) fn while_opening(path: &Path) -> impl FnOnce(Self) -> Self {
        move |error| {
            let Self::Storage { operation, source } = error else {
                return error;
            };
            let path = path.into();
            match trouble(&source) {
                DiskTrouble::Damaged => Self::Corrupt { path, source },
                DiskTrouble::Full | DiskTrouble::ReadOnly | DiskTrouble::Other => Self::Unopened {
                    path,
                    operation,
                    source,
                },
            }
        }
    }

    /// SQLite reports a file system that has become read-only as an I/O error: opening the WAL again
    /// tells the two apart.
    pub(super) fn naming_read_only_disk(self, wal: &Path) -> Self {
        let Self::Storage { operation, source } = self else {
            return self;
        };
        match trouble(&source) == DiskTrouble::Other && file::is_on_read_only_disk(wal) {
            true => Self::ReadOnly { operation, source },
            false => Self::Storage { operation, source },
        }
    }

    /// Reports whether SQLite has read something that it did not write.
    pub(super) fn is_damage(source: &rusqlite::Error) -> bool {
        trouble(source) == DiskTrouble::Damaged
    }
}

fn trouble_with_file(kind: io::ErrorKind) -> DiskTrouble {
    let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    if full.contains(&kind) {
        DiskTrouble::Full
    } else if kind == io::ErrorKind::ReadOnlyFilesystem {
        DiskTrouble::ReadOnly
    } else {
        DiskTrouble::Other
    }
}

fn trouble(source: &rusqlite::Error) -> DiskTrouble {
    match source.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => DiskTrouble::Full,
        Some(ErrorCode::ReadOnly) => DiskTrouble::ReadOnly,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => DiskTrouble::Damaged,
        Some(_) | None => DiskTrouble::Other,
    }
}
