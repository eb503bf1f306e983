//! The tables of the journal's file, and the version that names them.
//!
//! A file of another version is refused. A change to the tables is a new version; the first release
//! fixes one, and from then on a new version needs a step that upgrades the one before it.

use rusqlite::Connection;
use uuid::Uuid;

use crate::{
    journal::{request::RequestKey, sql},
    task::IdKey,
};

/// "Heel": marks the file as a journal, in the field that SQLite has for it.
pub(super) const APPLICATION_ID: i32 = 0x4865_656c;
/// The version of the tables, in `PRAGMA user_version`.
pub(in crate::journal) const VERSION: i32 = 4;

/// The tables.
///
/// - A record is written once, with its event; a task points to its latest one.
/// - `events.task_seq` is NULL for an event of a session. `activity` is NULL unless the event changed
///   how many tasks of its session are live.
/// - The columns by which a finished task is found are indexed when it ends; a live one is found in
///   memory. So the start of a task pays for no index but the one that start-up reads. A task is found by
///   its id through `seq`, which the id encodes: no index on ids can lose it.
/// - `labels` holds those of finished tasks; `stored_bytes` and `foreground` are set when a task ends.
///   `foreground` is 1 for a task that finished in the foreground, and 0 for any other.
/// - `requests` holds a digest of each request with an id, under `request_key`: enough to tell whether
///   another request with the id is the same one. The requests of waiting tasks, secrets included, are
///   in files of their own: see `waiting`.
/// - `answer_revision` is the event with which Spawn was answered, where that was before the start.
/// - `queues` holds the settings that differ from the defaults.
/// - `owned_sessions` holds the sessions that have owners, or had some when a server died. The window is in
///   microseconds.
/// - `work` holds a row for each task that has had a worker: its progress as JSON, if it has reported any,
///   and the latest number of its latest worker. `blocks` holds the latest blocks of all tasks: the place
///   of a block is that of its task and its number in a ring.
/// - `messages` holds the messages of mailboxes. One that was received has no text: the row remains for a
///   while, for its number and id.
/// - `delivered` holds the finished tasks whose end a client has received. It is written in batches, a
///   while after the delivery.
/// - Events below `oldest_revision` are not delivered; those that are still there hold the state of a
///   task.
/// - `epoch` and `unsynced_boot`: see `epoch`.
const TABLES: &str = "
CREATE TABLE journal (
    directory_id TEXT NOT NULL,
    id_key INTEGER NOT NULL,
    request_key BLOB NOT NULL,
    highest_removed_seq INTEGER NOT NULL,
    oldest_revision INTEGER NOT NULL,
    epoch TEXT NOT NULL,
    unsynced_boot TEXT
);
CREATE TABLE events (
    revision INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    task_seq INTEGER,
    format INTEGER NOT NULL,
    record TEXT NOT NULL,
    activity TEXT
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
    answer_revision INTEGER,
    end_revision INTEGER,
    end_state TEXT,
    stored_bytes INTEGER,
    foreground INTEGER
);
CREATE INDEX tasks_live ON tasks (seq) WHERE end_revision IS NULL;
CREATE INDEX tasks_ended ON tasks (end_revision) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_state ON tasks (end_state, kind, seq) WHERE end_revision IS NOT NULL;
CREATE INDEX tasks_session ON tasks (session_id, seq)
    WHERE end_revision IS NOT NULL AND session_id <> '';
CREATE INDEX tasks_parent ON tasks (parent_id, seq)
    WHERE end_revision IS NOT NULL AND parent_id IS NOT NULL;
CREATE INDEX tasks_foreground ON tasks (end_revision) WHERE foreground = 1;
CREATE TABLE labels (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (key, value, seq)
) WITHOUT ROWID;
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    digest BLOB NOT NULL,
    request_id TEXT NOT NULL UNIQUE
);
CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    slots INTEGER NOT NULL,
    paused INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE owned_sessions (
    session_id TEXT PRIMARY KEY,
    reattach_window INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE work (
    task_seq INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    progress TEXT,
    worker TEXT,
    sequence INTEGER NOT NULL
);
CREATE TABLE blocks (
    place INTEGER PRIMARY KEY,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    text TEXT NOT NULL,
    text_bytes INTEGER NOT NULL
);
CREATE TABLE messages (
    task_seq INTEGER NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sender TEXT NOT NULL,
    message_id TEXT,
    digest BLOB NOT NULL,
    text TEXT,
    PRIMARY KEY (task_seq, number)
) WITHOUT ROWID;
CREATE TABLE delivered (
    end_revision INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    foreground INTEGER NOT NULL
);
CREATE INDEX delivered_foreground ON delivered (end_revision) WHERE foreground = 1;
";

/// The identity of a state directory.
#[derive(Debug, Clone)]
pub(in crate::journal) struct Identity {
    pub(in crate::journal) directory_id: Uuid,
    /// The first epoch has the id of the directory.
    pub(in crate::journal) epoch: Uuid,
    pub(in crate::journal) id_key: IdKey,
    pub(in crate::journal) request_key: RequestKey,
}

/// Creates the tables in an empty file, in one transaction: a crash leaves an empty file.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(TABLES)?;
    transaction.execute(sql::NEW_IDENTITY, [Uuid::now_v7().to_string()])?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
