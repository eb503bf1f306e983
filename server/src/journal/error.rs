//! What can go wrong with the journal.

use std::{
    io,
    path::{Path, PathBuf},
};

use rusqlite::ErrorCode;

use super::file;
use crate::task::{EventKind, Revision, TaskId};

/// Why the journal did not do what it was asked to. Whatever it is, nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file could not be made or reached.
    #[error("cannot open the journal {path}")]
    Open {
        /// Which file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },

    /// The file is there, and somebody else's. It was left as it is.
    #[error("{path} is not a journal of Heeler's, or its first page is damaged")]
    Foreign {
        /// Which file.
        path: PathBuf,
    },

    /// The file comes from a later version. It was left as it is.
    #[error("{path} has schema {found}, and this server knows none above {known}")]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its schema.
        found: i32,
        /// The latest schema known here.
        known: i32,
    },

    /// The file has nothing in it, and its WAL has. Both were left as they are.
    #[error("{path} has been emptied, only its WAL is left: put a copy of it back")]
    Emptied {
        /// Which file.
        path: PathBuf,
    },

    /// The WAL is damaged in a page that nothing else has, and the file has a part of what came after
    /// it. Both were left as they are.
    #[error(
        "the WAL of the journal {path} is damaged at frame {frame}, and a part of what follows has been \
         moved on: put a copy of both back, or move them and the tasks beside them away to begin anew"
    )]
    Mixed {
        /// Which file.
        path: PathBuf,
        /// From where on the WAL cannot be followed.
        frame: u32,
    },

    /// The file is ours, and what has to be read of it at first cannot be. It was left as it is.
    #[error(
        "the journal {path} is damaged: put a copy of it back, or move it and the tasks beside it away \
         to begin anew"
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What the engine found.
        source: rusqlite::Error,
    },

    /// The storage engine could not open the file.
    #[error("cannot open the journal {path}: {operation} failed")]
    Unopened {
        /// Which file.
        path: PathBuf,
        /// What was being done.
        operation: &'static str,
        /// The engine's reason.
        source: rusqlite::Error,
    },

    /// The storage engine failed: the disk is full, broken or gone. It may work the next time.
    #[error("the journal failed in {operation}")]
    Storage {
        /// What was being done.
        operation: &'static str,
        /// The engine's reason.
        source: rusqlite::Error,
    },

    /// The disk takes no writes. It may work the next time.
    #[error("the journal cannot be written to: {operation} failed")]
    ReadOnly {
        /// What was being done.
        operation: &'static str,
        /// The engine's reason.
        source: rusqlite::Error,
    },

    /// The journal takes no more facts.
    #[error("the journal is closed")]
    Closed,

    /// A fact cannot follow on what is known of its task: it was created before or never, or it has
    /// ended already.
    #[error("{kind:?} cannot be the next event of {id}")]
    Misplaced {
        /// Which task.
        id: TaskId,
        /// Which fact.
        kind: EventKind,
    },

    /// Another task that is remembered was created by a request with this id.
    #[error("request id {request_id:?} is taken")]
    RequestTaken {
        /// Which one.
        request_id: String,
    },

    /// A task has text that cannot be recorded, e.g. a path that is not UTF-8.
    #[error("the record of {id} cannot be written")]
    Unwritable {
        /// Which task.
        id: TaskId,
        /// The encoder's reason.
        source: serde_json::Error,
    },

    /// Only finished tasks can be removed.
    #[error("{id} is not finished")]
    NotFinished {
        /// Which task.
        id: TaskId,
    },

    /// There is no such task, or no longer.
    #[error("there is no task {id}")]
    NotFound {
        /// Which id.
        id: TaskId,
    },

    /// What was recorded at a revision cannot be read any more.
    #[error("what was recorded at revision {} is damaged", revision.0)]
    Damaged {
        /// Which revision.
        revision: Revision,
        /// How.
        source: RecordError,
    },
}

/// Why events could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such place to read on from.
    #[error("revisions are known from {} to {}", oldest.0, newest.0)]
    OutOfRange {
        /// The first event that can still be read.
        oldest: Revision,
        /// The last one.
        newest: Revision,
    },

    /// The journal could not be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Its text is not what its format says.
    #[error("the record does not parse")]
    Malformed(#[from] serde_json::Error),

    /// It says that it has a format that never was.
    #[error("record format {0} is unknown")]
    UnknownFormat(i64),

    /// It says that something happened that never does.
    #[error("event kind {0:?} is unknown")]
    UnknownKind(String),

    /// Its row is not what a row is.
    #[error("the row does not hold what it should")]
    MalformedRow(#[from] rusqlite::types::FromSqlError),

    /// The page of the file that it is on is damaged, or its row is.
    #[error("the row cannot be read")]
    Unreadable(#[from] rusqlite::Error),

    /// It is of no task, where that of one should be.
    #[error("the record is not that of a task")]
    NoTask,

    /// The row that should be there is not.
    #[error("the record is missing")]
    Missing,
}

/// What is wrong with the disk, as far as a failure tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskTrouble {
    /// There is no space left.
    Full,
    /// It cannot be written to.
    ReadOnly,
    /// What is on it is not what was put there.
    Damaged,
    /// Something else.
    Other,
}

impl JournalError {
    /// What is wrong with the disk, where that is the reason.
    pub fn disk_trouble(&self) -> Option<DiskTrouble> {
        match self {
            Self::Storage { source, .. } | Self::Unopened { source, .. } => Some(trouble(source)),
            Self::ReadOnly { .. } => Some(DiskTrouble::ReadOnly),
            Self::Corrupt { .. } | Self::Emptied { .. } | Self::Mixed { .. } => {
                Some(DiskTrouble::Damaged)
            }
            Self::Open { .. }
            | Self::Foreign { .. }
            | Self::Newer { .. }
            | Self::Closed
            | Self::Misplaced { .. }
            | Self::RequestTaken { .. }
            | Self::Unwritable { .. }
            | Self::NotFinished { .. }
            | Self::NotFound { .. }
            | Self::Damaged { .. } => None,
        }
    }

    /// For `map_err`: whatever the engine failed in, it was while this file was being opened.
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

    /// To the engine, a disk that has become read-only is one that fails: the WAL, if it is opened once
    /// more, tells which it is.
    pub(super) fn looked_into(self, wal: &Path) -> Self {
        let Self::Storage { operation, source } = self else {
            return self;
        };
        match trouble(&source) == DiskTrouble::Other && file::takes_no_writes(wal) {
            true => Self::ReadOnly { operation, source },
            false => Self::Storage { operation, source },
        }
    }

    /// Whether the engine has met something on the disk that it did not put there.
    pub(super) fn is_damage(source: &rusqlite::Error) -> bool {
        trouble(source) == DiskTrouble::Damaged
    }

    /// For `map_err`: the engine failed in this operation.
    pub(super) fn storage(operation: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Storage { operation, source }
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
