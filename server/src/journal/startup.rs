//! What a journal has to read before it can serve: where it left off, and who is live.

use std::{error::Error, sync::Arc};

use rusqlite::{Connection, Row};

use super::{JournalError, archive, present::LiveTask, record::uint, ring::TaskRecord, sql};
use crate::task::{Revision, Seq};

/// The first revision that can be read and the last.
pub(super) fn bounds(connection: &Connection) -> Result<(Revision, Revision), JournalError> {
    let bounds = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, Option<i64>>(1)?));
    let (oldest, newest) = connection
        .query_row(sql::REVISION_BOUNDS, [], bounds)
        .map_err(JournalError::storage("reading the revisions"))?;
    Ok((
        Revision(uint(oldest).max(1)),
        Revision(newest.map_or(0, uint)),
    ))
}

/// The highest number that a task ever had; 0 before the first.
pub(super) fn highest_seq(connection: &Connection) -> Result<Seq, JournalError> {
    connection
        .query_row(sql::HIGHEST_SEQ, [], |row| row.get(0))
        .map(|highest| Seq(uint(highest)))
        .map_err(JournalError::storage("reading the sequence numbers"))
}

/// Every live task, oldest first.
pub(super) fn live_tasks(connection: &Connection) -> Result<Vec<LiveTask>, JournalError> {
    let doing = || JournalError::storage("reading the live tasks");
    let mut select = connection.prepare(sql::LIVE_TASKS).map_err(doing())?;
    let mut rows = select.query([]).map_err(doing())?;
    let mut live = Vec::new();
    while let Some(row) = rows.next().map_err(doing())? {
        match Place::new(row) {
            Ok(place) => live.extend(place.read(connection)),
            Err(error) => tracing::error!(%error, "a live task is lost: its row cannot be read"),
        }
    }
    Ok(live)
}

/// Where the records of a live task are.
struct Place {
    seq: Seq,
    latest: Revision,
    started: Option<Revision>,
    created: Revision,
}

impl Place {
    fn new(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: Seq(uint(row.get(0)?)),
            latest: Revision(uint(row.get(1)?)),
            started: row.get::<_, Option<i64>>(2)?.map(uint).map(Revision),
            created: Revision(uint(row.get(3)?)),
        })
    }

    /// A task whose latest record is damaged is known by an earlier one: its processes must not be
    /// forgotten for that.
    fn read(&self, connection: &Connection) -> Option<LiveTask> {
        let revisions = [Some(self.latest), self.started, Some(self.created)];
        let readable = revisions.into_iter().flatten().find_map(|revision| {
            let event = archive::stored_event(connection, revision);
            event.inspect_err(|error| self.complain(error)).ok()
        });
        let Some(TaskRecord { event, bytes }) = readable else {
            tracing::error!(
                seq = self.seq.0,
                "a live task is lost: it has no readable record"
            );
            return None;
        };
        let task = Arc::clone(&event.task);
        Some(LiveTask {
            task,
            created: self.created,
            started: self.started,
            bytes,
        })
    }

    fn complain(&self, error: &JournalError) {
        let error: &dyn Error = error;
        tracing::error!(
            seq = self.seq.0,
            error,
            "a live task's record cannot be read"
        );
    }
}
