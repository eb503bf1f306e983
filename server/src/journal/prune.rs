//! Pruning: selects finished tasks and old events to delete, and counts the finished tasks and their output.
//!
//! The supervisor decides how much is kept. A task whose end was delivered goes before one whose
//! end was not. Every step is one short transaction; a crash leaves the state before it or after it.

mod delivered;
mod events;
mod totals;

use rusqlite::{Connection, OptionalExtension, Row};

use super::{
    Journal, JournalError,
    read::Lane,
    record::{int, uint},
    sql,
    write::Change,
};
use crate::task::{Revision, Task, TaskId, Timestamp};

pub(super) use delivered::{Delivered, mark_delivered};
pub(super) use events::{drop_superseded, prune_events};
pub(super) use totals::Totals;

pub(crate) use totals::FinishedTotals;

/// Delivered ends that are written in one transaction, and events that are deleted in one: a
/// millisecond or two, for which appenders wait.
const DELIVERED_AT_ONCE: usize = 256;
const EVENTS_AT_ONCE: u64 = 256;

/// A class of finished tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FinishedClass {
    All,
    /// The end was delivered.
    Delivered,
    /// Finished in the foreground.
    Foreground,
    /// Finished in the foreground, and the end was delivered.
    DeliveredForeground,
}

impl FinishedClass {
    fn statement(self) -> &'static str {
        match self {
            Self::All => sql::OLDEST_FINISHED,
            Self::Delivered => sql::OLDEST_DELIVERED,
            Self::Foreground => sql::OLDEST_FINISHED_FOREGROUND,
            Self::DeliveredForeground => sql::OLDEST_DELIVERED_FOREGROUND,
        }
    }
}

/// A finished task that could be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) id: TaskId,
    /// The revision of its end.
    pub(crate) end: Revision,
    /// 1970 if it cannot be read.
    pub(crate) ended: Timestamp,
    pub(crate) stored_bytes: u64,
}

impl Journal {
    /// Notes that a client receives this task's end; does nothing for a live task.
    pub(crate) fn note_delivered(&self, task: &Task) {
        self.shared.delivered.note(task);
    }

    /// Waits until there are delivered ends to write.
    pub(crate) async fn delivered_noted(&self) {
        self.shared.delivered.noted().await;
    }

    /// Makes the delivered ends durable.
    pub(crate) async fn write_delivered(&self) -> Result<(), JournalError> {
        loop {
            let seqs = self.shared.delivered.take(DELIVERED_AT_ONCE);
            if seqs.is_empty() {
                return Ok(());
            }
            let change = Change::MarkDelivered(seqs.clone());
            if let Err(error) = self.shared.writer.write(change).await {
                self.shared.delivered.put_back(seqs);
                return Err(error);
            }
        }
    }

    /// Counts the finished tasks; from then on [`Journal::finished_totals`] is exact. Takes long
    /// enough to be done in the background.
    pub(crate) async fn count_finished(&self) -> Result<(), JournalError> {
        let journal = self.clone();
        let count = move |connection: &Connection| journal.count(connection);
        self.shared
            .pool
            .read_long(Lane::Query, move |_, c| count(c))
            .await
    }

    fn count(&self, connection: &Connection) -> Result<(), JournalError> {
        let failed = || JournalError::storage("counting the finished tasks");
        let shared = &self.shared;
        // The snapshot is that of the first read; commits after it are counted as they happen.
        shared
            .writer
            .between_commits(|| {
                shared.totals.begin_count();
                connection.query_row(sql::OLDEST_REVISION, [], |_| Ok(()))
            })
            .map_err(failed())?;
        let counted = connection.query_row(sql::COUNT_FINISHED, [], |row| {
            Ok(FinishedTotals {
                tasks: uint(row.get(0)?),
                stored_bytes: uint(row.get(1)?),
            })
        });
        shared.totals.add_counted(counted.map_err(failed())?);
        Ok(())
    }

    /// The number of finished tasks, and the amount of their output.
    pub(crate) fn finished_totals(&self) -> FinishedTotals {
        self.shared.totals.finished()
    }

    /// The tasks of this class that ended first, after a revision.
    pub(crate) async fn oldest_finished(
        &self,
        class: FinishedClass,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Candidate>, JournalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let select = move |connection: &Connection| {
            let mut select = connection.prepare_cached(class.statement())?;
            let mut rows = select.query([int(after.0), limit])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(candidate(row));
            }
            Ok(found)
        };
        let failed = || JournalError::storage("looking for the oldest tasks");
        let read = move |connection: &Connection| select(connection).map_err(failed());
        self.shared
            .pool
            .read_long(Lane::Query, move |_, c| read(c))
            .await
    }

    /// The newest end among the delivered ones of foreground tasks that are older than the latest
    /// `kept`; `None` if there are no more than that.
    pub(crate) async fn delivered_foreground_before(
        &self,
        kept: u32,
    ) -> Result<Option<Revision>, JournalError> {
        let select = move |connection: &Connection| {
            let mut select = connection.prepare_cached(sql::DELIVERED_FOREGROUND_BEFORE)?;
            let end = select.query_row([kept], |row| row.get(0)).optional()?;
            Ok(end.map(|revision| Revision(uint(revision))))
        };
        let failed = || JournalError::storage("counting delivered foreground tasks");
        let read = move |connection: &Connection| select(connection).map_err(failed());
        self.shared
            .pool
            .read_long(Lane::Query, move |_, c| read(c))
            .await
    }

    /// Deletes some of the oldest events below a revision, and returns whether there are more. Events
    /// that hold the state of a task stay, and are not delivered.
    pub(crate) async fn prune_events(&self, up_to: Revision) -> Result<bool, JournalError> {
        // The latest event stays: the next revision follows it.
        let up_to = up_to.min(self.head());
        let step = Revision(self.oldest().0 + EVENTS_AT_ONCE).min(up_to);
        if step > self.oldest() {
            let change = Change::PruneEvents { up_to: step };
            self.shared.writer.write(change).await?;
        }
        Ok(step < up_to)
    }
}

/// None if the row has no valid id: no client could name the task either.
fn candidate(row: &Row<'_>) -> Option<Candidate> {
    let id: String = row.get(0).ok()?;
    Some(Candidate {
        id: id.parse().ok()?,
        stored_bytes: row.get(1).map_or(0, uint),
        ended: Timestamp(row.get(2).map_or(0, uint)),
        end: Revision(row.get(3).map_or(0, uint)),
    })
}
