//! The tables, their versions, and how a file of an older version becomes one of this.
//!
//! A version is a step from the one before, and a new file takes them all: so it cannot differ from
//! one that has grown old. Steps that were released are never edited.

use rusqlite::Connection;
use uuid::Uuid;

use super::sql;
use crate::task::IdKey;

/// "Heel": marks the file as ours, in the place that SQLite has for it.
pub(super) const APPLICATION_ID: i32 = 0x4865_656c;
/// The version that this server writes.
pub(super) const VERSION: i32 = STEPS.len() as i32;

/// The step to each version from the one before it; that to the first begins with nothing.
pub(super) const STEPS: [&str; 5] = [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5];

/// The tables of version 1.
///
/// - A record is written once, with its event; a task points to its latest one.
/// - `events.task_seq` may be NULL: not every fact to come need be that of one task.
/// - What a finished task is found by is indexed when it ends; a live one is found in memory. So
///   the start of a task pays for no index but the one that start-up reads.
/// - `labels` holds those of finished tasks. `tail` stands last so that a record can be read without
///   it.
const VERSION_1: &str = "
CREATE TABLE journal (
    epoch TEXT NOT NULL,
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

/// What retention goes by, and how far compaction has come.
///
/// - Events below `oldest_revision` are told to nobody; those that are still there hold the state of
///   a task.
/// - `output_bytes` is that of a finished task. Of a record that cannot be read it is unknown.
/// - `seen` has the finished tasks whose end was told to some client. It is written in passing, a
///   while after.
const VERSION_2: &str = "
ALTER TABLE journal ADD COLUMN oldest_revision INTEGER NOT NULL DEFAULT 1;
UPDATE journal SET oldest_revision = ifnull((SELECT min(revision) FROM events), 1);
ALTER TABLE tasks ADD COLUMN output_bytes INTEGER;
UPDATE tasks SET output_bytes = (
    SELECT CASE WHEN json_valid(record) THEN json_extract(record, '$.output_bytes') END
    FROM events WHERE events.revision = tasks.end_revision
) WHERE end_revision IS NOT NULL;
CREATE TABLE seen (
    end_revision INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL
);
";

/// How many tasks of its session are live after an event, as JSON; NULL where that has not changed.
const VERSION_3: &str = "
ALTER TABLE events ADD COLUMN activity TEXT;
";

/// What waits for its turn, and where.
///
/// - `waiting` has the requests, secrets included, of tasks that have not begun, as far as `requests`
///   does not have them. They go when the task starts or ends.
/// - `queues` has the settings that differ from the defaults.
/// - `answer_revision` is what the Spawn of a task was answered with, where that was before its start.
const VERSION_4: &str = "
CREATE TABLE waiting (
    seq INTEGER PRIMARY KEY,
    format INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE queues (
    name TEXT PRIMARY KEY,
    slots INTEGER NOT NULL,
    paused INTEGER NOT NULL
) WITHOUT ROWID;
ALTER TABLE tasks ADD COLUMN answer_revision INTEGER;
";

/// Which era it is, and whether facts have been told that a power cut would take: see `era`.
const VERSION_5: &str = "
ALTER TABLE journal ADD COLUMN era TEXT;
ALTER TABLE journal ADD COLUMN unsynced_boot TEXT;
";

/// What makes a state directory this one and no other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identity {
    pub(super) directory_id: Uuid,
    /// The era: the same, unless facts were lost since.
    pub(super) epoch: Uuid,
    pub(super) id_key: IdKey,
}

/// Makes the tables of an empty file. All or nothing, marks included: a crash in between leaves an
/// empty file.
pub(super) fn create(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute_batch(STEPS[0])?;
    transaction.execute(sql::NEW_IDENTITY, [Uuid::now_v7().to_string()])?;
    for step in &STEPS[1..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// Brings a file of an older version to this one, or leaves it as it was.
pub(super) fn upgrade(connection: &mut Connection, from: i32) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}
