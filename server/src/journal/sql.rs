//! Every fixed statement, in one place, so that one test can hold each to its query plan.

macro_rules! statements {
    ($($(#[$why:meta])* $name:ident = $text:literal;)*) => {
        $($(#[$why])* pub(super) const $name: &str = $text;)*

        #[cfg(test)]
        pub(super) const ALL: &[&str] = &[$($name),*];
    };
}

statements! {
    TABLE_COUNT = "SELECT count(*) FROM sqlite_schema";
    NEW_IDENTITY = "INSERT INTO journal (state_id, id_key, highest_removed_seq)
        VALUES (?1, random(), 0)";
    IDENTITY = "SELECT state_id, id_key FROM journal";

    REVISION_BOUNDS = "SELECT (SELECT min(revision) FROM events), (SELECT max(revision) FROM events)";
    /// Removing takes the row away, and with it the memory of its number.
    HIGHEST_SEQ = "SELECT max(
        (SELECT highest_removed_seq FROM journal), ifnull((SELECT max(seq) FROM tasks), 0))";
    LIVE_TASKS = "SELECT seq, revision, started_revision, created_revision
        FROM tasks INDEXED BY tasks_live WHERE end_revision IS NULL ORDER BY seq";

    INSERT_EVENT = "INSERT INTO events (revision, at, kind, task_seq, format, record, tail)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    INSERT_TASK = "INSERT INTO tasks
            (seq, id, kind, session_id, parent_id, revision, created_revision, started_revision)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7)";
    /// Leaves `end_revision` unnamed: naming it would rewrite every index that depends on it.
    CHANGE_TASK = "UPDATE tasks
        SET revision = ?2, started_revision = coalesce(started_revision, ?3)
        WHERE seq = ?1 AND end_revision IS NULL";
    END_TASK = "UPDATE tasks
        SET revision = ?2, started_revision = coalesce(started_revision, ?3),
            end_revision = ?2, end_state = ?4
        WHERE seq = ?1 AND end_revision IS NULL";
    INSERT_LABEL = "INSERT INTO labels (key, value, seq) VALUES (?1, ?2, ?3)";
    INSERT_REQUEST = "INSERT INTO requests (seq, format, body, request_id)
        VALUES (?1, ?2, ?3, ?4)";

    DELETE_TASK = "DELETE FROM tasks WHERE seq = ?1";
    DELETE_LABEL = "DELETE FROM labels WHERE key = ?1 AND value = ?2 AND seq = ?3";
    DELETE_REQUEST = "DELETE FROM requests WHERE seq = ?1";
    RAISE_HIGHEST_REMOVED = "UPDATE journal
        SET highest_removed_seq = max(highest_removed_seq, ?1)";

    EVENT_AT = "SELECT revision, at, kind, format, record, tail FROM events WHERE revision = ?1";
    EVENTS_AFTER = "SELECT revision, at, kind, format, record, tail
        FROM events WHERE revision > ?1 ORDER BY revision LIMIT ?2";
    FINISHED_BY_ID = "SELECT revision, coalesce(started_revision, end_revision)
        FROM tasks INDEXED BY tasks_id
        WHERE id = ?1 AND end_revision IS NOT NULL";
    ID_BY_SEQ = "SELECT id, end_revision IS NOT NULL FROM tasks WHERE seq = ?1";
    REQUEST_BY_ID = "SELECT r.format, r.body, t.created_revision, t.revision,
            coalesce(t.started_revision, t.end_revision)
        FROM requests AS r CROSS JOIN tasks AS t ON t.seq = r.seq WHERE r.request_id = ?1";
}
