//! Requests of tasks that have not started, and the settings of queues.

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
}

fn queue(row: &Row<'_>) -> rusqlite::Result<(String, QueueSettings)> {
    let (slots, paused) = (row.get(1)?, row.get(2)?);
    Ok((row.get(0)?, QueueSettings { slots, paused }))
}
