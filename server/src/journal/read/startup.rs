//! The reads before a journal can serve: its bounds, and the live tasks.

use std::{error::Error, sync::Arc};

use rusqlite::{Connection, Row};

use super::{SizedEvent, events::stored_event, live_state::LiveTask};
use crate::{
    journal::{JournalError, record::uint, sql},
    task::{Revision, Seq},
};

/// The first revision that can be read, and the last.
pub(in crate::journal) fn bounds(
    connection: &Connection,
) -> Result<(Revision, Revision), JournalError> {
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
pub(in crate::journal) fn highest_seq(connection: &Connection) -> Result<Seq, JournalError> {
    connection
        .query_row(sql::HIGHEST_SEQ, [], |row| row.get(0))
        .map(|highest| Seq(uint(highest)))
        .map_err(JournalError::storage("reading the sequence numbers"))
}

/// Every live task, oldest first.
pub(in crate::journal) fn live_tasks(
    connection: &Connection,
) -> Result<Vec<LiveTask>, JournalError> {
    let failed = || JournalError::storage("reading the live tasks");
    let mut select = connection.prepare(sql::LIVE_TASKS).map_err(failed())?;
    let mut rows = select.query([]).map_err(failed())?;
    let mut live = Vec::new();
    while let Some(row) = rows.next().map_err(failed())? {
        match LiveRow::new(row) {
            Ok(row) => live.extend(row.read(connection)),
            Err(error) => tracing::error!(%error, "a live task is lost: its row cannot be read"),
        }
    }
    Ok(live)
}

/// The row of a live task.
struct LiveRow {
    seq: Seq,
    latest: Revision,
    started: Option<Revision>,
    created: Revision,
}

impl LiveRow {
    fn new(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            seq: Seq(uint(row.get(0)?)),
            latest: Revision(uint(row.get(1)?)),
            started: row.get::<_, Option<i64>>(2)?.map(uint).map(Revision),
            created: Revision(uint(row.get(3)?)),
        })
    }

    /// A task whose latest record is damaged is read from an earlier one: its processes must not be
    /// lost with the record.
    fn read(&self, connection: &Connection) -> Option<LiveTask> {
        let revisions = [Some(self.latest), self.started, Some(self.created)];
        let readable = revisions.into_iter().flatten().find_map(|revision| {
            let event = stored_event(connection, revision);
            event.inspect_err(|error| self.log_damage(error)).ok()
        });
        let Some(SizedEvent { event, bytes }) = readable else {
            let seq = self.seq.0;
            tracing::error!(seq, "a live task is lost: it has no readable record");
            return None;
        };
        let task = Arc::clone(&event.task);
        Some(LiveTask {
            task,
            created: self.created,
            started: self.started,
            changed: event.at,
            bytes,
        })
    }

    fn log_damage(&self, error: &JournalError) {
        let error: &dyn Error = error;
        let seq = self.seq.0;
        tracing::error!(seq, error, "a live task's record cannot be read");
    }
}
