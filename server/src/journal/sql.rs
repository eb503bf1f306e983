//! Every fixed statement, in one place, so that one test can check the query plan of each.

macro_rules! statements {
    ($($(#[$why:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$why])* pub(super) const $name: &str = $text;)*

        #[cfg(test)]
        pub(super) const ALL: &[&str] = &[$($name),*];
    };
}

/// Reads every finished task; executed once, in the background.
pub(super) const COUNT_FINISHED: &str = "SELECT count(*), ifnull(sum(stored_bytes), 0) FROM tasks
    WHERE end_revision IS NOT NULL";

/// Compares the index of the request ids with its table; executed once, before the first use.
pub(super) const CHECK_REQUESTS: &str = "PRAGMA integrity_check(requests)";
/// Finds a request in its table, for a damaged index.
pub(super) const REQUEST_BY_SCAN: &str =
    "SELECT r.format, r.digest, t.created_revision, t.revision,
        coalesce(t.answer_revision, t.started_revision, t.end_revision)
    FROM requests AS r NOT INDEXED CROSS JOIN tasks AS t ON t.seq = r.seq WHERE r.request_id = ?1";

/// Reads every queue with settings; executed once, at start-up.
pub(super) const QUEUES: &str = "SELECT name, slots, paused FROM queues";
/// Reads every session with owners; executed once, at start-up.
pub(super) const OWNED_SESSIONS: &str = "SELECT session_id, reattach_window FROM owned_sessions";

statements! {
    TABLE_COUNT = "SELECT count(*) FROM sqlite_schema";
    NEW_IDENTITY = "INSERT INTO journal
            (directory_id, id_key, request_key, highest_removed_seq, oldest_revision, epoch)
        VALUES (?1, random(), randomblob(32), 0, 1, ?1)";
    IDENTITY = "SELECT directory_id, id_key, epoch, unsynced_boot, request_key FROM journal";
    SET_EPOCH = "UPDATE journal SET epoch = ?1, unsynced_boot = ?2";
    SET_SYNCED = "UPDATE journal SET unsynced_boot = NULL";

    REVISION_BOUNDS = "SELECT (SELECT oldest_revision FROM journal),
        (SELECT max(revision) FROM events)";
    OLDEST_REVISION = "SELECT oldest_revision FROM journal";
    /// A removed task has no row: its number is kept in `highest_removed_seq`.
    HIGHEST_SEQ = "SELECT max(
        (SELECT highest_removed_seq FROM journal), ifnull((SELECT max(seq) FROM tasks), 0))";
    LIVE_TASKS = "SELECT seq, revision, started_revision, created_revision
        FROM tasks INDEXED BY tasks_live WHERE end_revision IS NULL ORDER BY seq";

    INSERT_EVENT = "INSERT INTO events (revision, at, kind, task_seq, format, record, activity)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    INSERT_SESSION_EVENT = "INSERT INTO events (revision, at, kind, format, record)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    INSERT_TASK = "INSERT INTO tasks
            (seq, id, kind, session_id, parent_id, revision, created_revision, started_revision,
            answer_revision)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8)";
    /// Does not name `end_revision`: naming it would rewrite every index that depends on it.
    CHANGE_TASK = "UPDATE tasks
        SET revision = ?2, started_revision = coalesce(started_revision, ?3)
        WHERE seq = ?1 AND end_revision IS NULL";
    END_TASK = "UPDATE tasks
        SET revision = ?2, started_revision = coalesce(started_revision, ?3),
            end_revision = ?2, end_state = ?4, stored_bytes = ?5, foreground = ?6
        WHERE seq = ?1 AND end_revision IS NULL";
    INSERT_LABEL = "INSERT INTO labels (key, value, seq) VALUES (?1, ?2, ?3)";
    INSERT_REQUEST = "INSERT INTO requests (seq, format, digest, request_id)
        VALUES (?1, ?2, ?3, ?4)";
    SET_QUEUE = "INSERT OR REPLACE INTO queues (name, slots, paused) VALUES (?1, ?2, ?3)";
    DELETE_QUEUE = "DELETE FROM queues WHERE name = ?1";
    OWN_SESSION = "INSERT OR REPLACE INTO owned_sessions (session_id, reattach_window) VALUES (?1, ?2)";
    DISOWN_SESSION = "DELETE FROM owned_sessions WHERE session_id = ?1";

    SET_WORK = "INSERT OR REPLACE INTO work (task_seq, format, progress, worker, sequence)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    SET_BLOCK = "INSERT OR REPLACE INTO blocks (place, number, at, kind, name, text, text_bytes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    INSERT_MESSAGE = "INSERT INTO messages (task_seq, number, at, sender, message_id, digest, text)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    RECEIVE_MESSAGES = "UPDATE messages SET text = NULL
        WHERE task_seq = ?1 AND number <= ?2 AND text IS NOT NULL";
    DELETE_RECEIPTS = "DELETE FROM messages
        WHERE task_seq = ?1 AND number <= ?2 AND text IS NULL";
    DELETE_WORK = "DELETE FROM work WHERE task_seq = ?1";
    DELETE_BLOCKS = "DELETE FROM blocks WHERE place >= ?1 AND place < ?2";
    DELETE_MESSAGES = "DELETE FROM messages WHERE task_seq = ?1";

    DELETE_TASK = "DELETE FROM tasks WHERE seq = ?1";
    DELETE_LABEL = "DELETE FROM labels WHERE key = ?1 AND value = ?2 AND seq = ?3";
    DELETE_REQUEST = "DELETE FROM requests WHERE seq = ?1";
    RAISE_HIGHEST_REMOVED = "UPDATE journal
        SET highest_removed_seq = max(highest_removed_seq, ?1)";

    DELETE_DELIVERED = "DELETE FROM delivered WHERE end_revision = ?1";
    /// Events below the oldest delivered one were kept for their task alone.
    DELETE_KEPT_EVENTS = "DELETE FROM events
        WHERE revision IN (
            SELECT created_revision FROM tasks WHERE seq = ?1
            UNION ALL SELECT started_revision FROM tasks WHERE seq = ?1
            UNION ALL SELECT revision FROM tasks WHERE seq = ?1)
        AND revision < ?2";

    /// Keeps the events that hold the state of a task, and those that answer a repeated request.
    DELETE_EVENTS = "DELETE FROM events
        WHERE revision >= ?1 AND revision < ?2 AND NOT EXISTS (
            SELECT 1 FROM tasks AS t WHERE t.seq = events.task_seq AND (
                t.revision = events.revision
                OR (t.end_revision IS NULL
                    AND events.revision IN (t.created_revision, t.started_revision))
                OR (coalesce(t.answer_revision, t.started_revision) = events.revision
                    AND EXISTS (SELECT 1 FROM requests AS r WHERE r.seq = t.seq))))";
    DELETE_SUPERSEDED = "DELETE FROM events WHERE revision = ?1 AND NOT EXISTS (
        SELECT 1 FROM tasks AS t WHERE t.seq = ?2
            AND ?1 IN (t.revision, t.created_revision, t.started_revision))";
    SET_OLDEST_REVISION = "UPDATE journal SET oldest_revision = ?1";
    /// Inserts nothing for a task that was removed meanwhile.
    MARK_DELIVERED = "INSERT OR IGNORE INTO delivered (end_revision, seq, foreground)
        SELECT end_revision, seq, foreground FROM tasks WHERE seq = ?1 AND end_revision IS NOT NULL";

    OLDEST_DELIVERED = "SELECT t.id, t.stored_bytes, e.at, t.end_revision
        FROM delivered AS d CROSS JOIN tasks AS t ON t.seq = d.seq
            LEFT JOIN events AS e ON e.revision = t.end_revision
        WHERE d.end_revision > ?1 ORDER BY d.end_revision LIMIT ?2";
    OLDEST_FINISHED = "SELECT t.id, t.stored_bytes, e.at, t.end_revision
        FROM tasks AS t INDEXED BY tasks_ended
            LEFT JOIN events AS e ON e.revision = t.end_revision
        WHERE t.end_revision > ?1 ORDER BY t.end_revision LIMIT ?2";
    OLDEST_DELIVERED_FOREGROUND = "SELECT t.id, t.stored_bytes, e.at, t.end_revision
        FROM delivered AS d INDEXED BY delivered_foreground
            CROSS JOIN tasks AS t ON t.seq = d.seq
            LEFT JOIN events AS e ON e.revision = t.end_revision
        WHERE d.foreground = 1 AND d.end_revision > ?1 ORDER BY d.end_revision LIMIT ?2";
    OLDEST_FINISHED_FOREGROUND = "SELECT t.id, t.stored_bytes, e.at, t.end_revision
        FROM tasks AS t INDEXED BY tasks_foreground
            LEFT JOIN events AS e ON e.revision = t.end_revision
        WHERE t.foreground = 1 AND t.end_revision > ?1 ORDER BY t.end_revision LIMIT ?2";
    /// The end that this many delivered ends of foreground tasks follow.
    DELIVERED_FOREGROUND_BEFORE = "SELECT end_revision
        FROM delivered INDEXED BY delivered_foreground
        WHERE foreground = 1 AND end_revision > 0
        ORDER BY end_revision DESC LIMIT 1 OFFSET ?1";

    LIVE_WORK = "SELECT w.task_seq, w.format, w.progress, w.worker, w.sequence
        FROM tasks AS t INDEXED BY tasks_live CROSS JOIN work AS w ON w.task_seq = t.seq
        WHERE t.end_revision IS NULL";
    WORK_OF = "SELECT task_seq, format, progress, worker, sequence FROM work WHERE task_seq = ?1";
    BLOCKS_OF = "SELECT number, at, kind, name, text, text_bytes
        FROM blocks WHERE place >= ?1 AND place < ?2";
    MESSAGES_AFTER = "SELECT number, at, sender, message_id, text FROM messages
        WHERE task_seq = ?1 AND number > ?2 AND text IS NOT NULL ORDER BY number LIMIT ?3";
    MAILBOX_OF = "SELECT number, message_id, digest, octet_length(text) FROM messages
        WHERE task_seq = ?1 ORDER BY number";

    EVENT_AT = "SELECT revision, at, kind, format, record, activity
        FROM events WHERE revision = ?1";
    EVENTS_AFTER = "SELECT revision, at, kind, format, record, activity
        FROM events WHERE revision > ?1 ORDER BY revision LIMIT ?2";
    TASK_BY_SEQ = "SELECT id, end_revision IS NOT NULL, revision,
            coalesce(answer_revision, started_revision, end_revision)
        FROM tasks WHERE seq = ?1";
    REQUEST_BY_ID = "SELECT r.format, r.digest, t.created_revision, t.revision,
            coalesce(t.answer_revision, t.started_revision, t.end_revision)
        FROM requests AS r CROSS JOIN tasks AS t ON t.seq = r.seq WHERE r.request_id = ?1";
}
