//! What waits, and where: the requests of tasks that have not begun, and how queues are set.

use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    Archive, Journal, JournalError, Revision,
    record::{self, int},
    sql,
};
use crate::task::{QueueSettings, SpawnRequest, Task};

impl Journal {
    /// What a task that waits for its turn, or has just got it, was asked for with; `None` once it has
    /// begun.
    pub async fn waiting_request(&self, task: &Task) -> Result<Option<SpawnRequest>, JournalError> {
        let read = |_: &Archive, connection: &Connection| {
            let request =
                |row: &Row<'_>| Ok(record::request(row.get(0)?, row.get_ref(1)?.as_bytes()?));
            let found = connection
                .prepare_cached(sql::WAITING_REQUEST)
                .and_then(|mut find| find.query_row([int(task.seq.0)], request).optional())
                .map_err(JournalError::storage("looking for a request"))?;
            let damaged = |source| JournalError::Damaged {
                revision: Revision(task.revision.0),
                source,
            };
            found.transpose().map_err(damaged)
        };
        self.shared.archive.read(read)
    }

    /// Makes durable how a queue is set.
    pub async fn set_queue(
        &self,
        name: String,
        settings: QueueSettings,
    ) -> Result<(), JournalError> {
        self.shared.writer.set_queue(name, settings).await
    }

    /// The queues that are not set as any other. One whose row cannot be read is as any other.
    pub async fn queues(&self) -> Result<Vec<(String, QueueSettings)>, JournalError> {
        let read = |_: &Archive, connection: &Connection| {
            let doing = || JournalError::storage("reading the queues");
            let mut select = connection.prepare(sql::QUEUES).map_err(doing())?;
            let rows = select.query_map([], queue).map_err(doing())?;
            let readable = rows.filter_map(|row| {
                row.inspect_err(|error| tracing::error!(%error, "a queue's settings are lost"))
                    .ok()
            });
            Ok(readable.collect())
        };
        self.shared.archive.read(read)
    }
}

fn queue(row: &Row<'_>) -> rusqlite::Result<(String, QueueSettings)> {
    let (slots, paused) = (row.get(1)?, row.get(2)?);
    Ok((row.get(0)?, QueueSettings { slots, paused }))
}
