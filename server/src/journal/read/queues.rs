//! Requests of tasks that have not started, the settings of queues, and the sessions with owners.

use std::time::Duration;

use rusqlite::{Connection, Row};

use crate::{
    journal::{Journal, JournalError, sql},
    task::{QueueSettings, SpawnRequest, Task},
};

impl Journal {
    /// The request of a task that is waiting, or was just admitted; none once it has started.
    pub(crate) async fn waiting_request(
        &self,
        task: &Task,
    ) -> Result<Option<SpawnRequest>, JournalError> {
        self.shared.waiting.get(task)
    }

    /// The queues whose settings differ from the defaults. One with an unreadable row is left out.
    pub(crate) async fn queues(&self) -> Result<Vec<(String, QueueSettings)>, JournalError> {
        let read = |connection: &Connection| {
            let mut select = connection.prepare(sql::QUEUES)?;
            let rows = select.query_map([], queue)?;
            let readable = rows.filter_map(|row| {
                row.inspect_err(|error| tracing::error!(%error, "cannot read the settings of a queue; the defaults apply"))
                    .ok()
            });
            Ok(readable.collect())
        };
        let failed = || JournalError::storage("reading the queues");
        self.shared
            .pool
            .read(|_, connection| read(connection).map_err(failed()))
    }

    /// The sessions with owners and their reattach windows. One with an unreadable row is left out.
    pub(crate) async fn owned_sessions(&self) -> Result<Vec<(String, Duration)>, JournalError> {
        let read = |connection: &Connection| {
            let mut select = connection.prepare(sql::OWNED_SESSIONS)?;
            let rows = select.query_map([], owned_session)?;
            let readable = rows.filter_map(|row| {
                row.inspect_err(|error| tracing::error!(%error, "cannot read a session with owners; it has none"))
                    .ok()
            });
            Ok(readable.collect())
        };
        let failed = || JournalError::storage("reading the sessions with owners");
        self.shared
            .pool
            .read(|_, connection| read(connection).map_err(failed()))
    }
}

fn owned_session(row: &Row<'_>) -> rusqlite::Result<(String, Duration)> {
    let micros: i64 = row.get(1)?;
    let window = Duration::from_micros(micros.unsigned_abs());
    Ok((row.get(0)?, window))
}

fn queue(row: &Row<'_>) -> rusqlite::Result<(String, QueueSettings)> {
    let (slots, paused) = (row.get(1)?, row.get(2)?);
    Ok((row.get(0)?, QueueSettings { slots, paused }))
}
