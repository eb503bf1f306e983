//! What the journal lets go of while it runs, and what it is chosen by: finished tasks, those whose
//! end somebody has seen before those that nobody has; and old events, a few at a time.
//!
//! How much is to be kept is decided further up. Every step is one short transaction, and whatever a
//! crash interrupts is as it was before the step or after it.

use rusqlite::{Connection, Row};

use super::{Finished, Journal, JournalError, Revision, TaskId, record::uint, sql};
use crate::task::{Task, Timestamp};

/// How many seen ends are written down in one transaction, and how many events dropped: a
/// millisecond or two, for which appenders wait.
const SEEN_AT_ONCE: usize = 256;
const EVENTS_AT_ONCE: u64 = 256;

/// A finished task that could be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which.
    pub id: TaskId,
    /// When it ended; 1970 where that cannot be read.
    pub ended: Timestamp,
    /// What it has written.
    pub output_bytes: u64,
}

impl Journal {
    /// A client is being told of this task's end; of a live one nothing is noted.
    pub fn note_delivered(&self, task: &Task) {
        self.shared.seen.note(task);
    }

    /// Waits until ends have been seen that are not written down.
    pub async fn seen_arrived(&self) {
        self.shared.seen.arrived().await;
    }

    /// Writes down which ends have been seen.
    pub async fn write_seen(&self) -> Result<(), JournalError> {
        loop {
            let seqs = self.shared.seen.take(SEEN_AT_ONCE);
            if seqs.is_empty() {
                return Ok(());
            }
            if let Err(error) = self.shared.writer.mark_seen(seqs.clone()).await {
                self.shared.seen.put_back(seqs);
                return Err(error);
            }
        }
    }

    /// Counts the finished tasks; from then on [`Journal::finished_holdings`] is exact. Long enough
    /// to be done beside everything else.
    pub async fn census(&self) -> Result<(), JournalError> {
        let this = self.clone();
        let count = move |_: &super::Archive, connection: &Connection| this.count(connection);
        self.shared.archive.read_long(count).await
    }

    fn count(&self, connection: &Connection) -> Result<(), JournalError> {
        let doing = || JournalError::storage("counting the finished tasks");
        let shared = &self.shared;
        // The snapshot is that of the first read: what is committed later is followed.
        shared
            .writer
            .between_commits(|| {
                shared.holdings.begin_count();
                connection.query_row(sql::OLDEST_REVISION, [], |_| Ok(()))
            })
            .map_err(doing())?;
        let counted = connection.query_row(sql::CENSUS, [], |row| {
            Ok(Finished {
                tasks: uint(row.get(0)?),
                output_bytes: uint(row.get(1)?),
            })
        });
        shared.holdings.counted(counted.map_err(doing())?);
        Ok(())
    }

    /// How many finished tasks there are, and what they have written.
    pub fn finished_holdings(&self) -> Finished {
        self.shared.holdings.finished()
    }

    /// The finished tasks that were the first to end among those whose end has been seen.
    pub async fn oldest_seen(&self, most: usize) -> Result<Vec<Candidate>, JournalError> {
        self.candidates(sql::OLDEST_DELIVERED, most).await
    }

    /// The finished tasks that were the first to end, seen or not.
    pub async fn oldest_finished(&self, most: usize) -> Result<Vec<Candidate>, JournalError> {
        self.candidates(sql::OLDEST_FINISHED, most).await
    }

    async fn candidates(
        &self,
        statement: &'static str,
        most: usize,
    ) -> Result<Vec<Candidate>, JournalError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        let select = move |connection: &Connection| {
            let mut select = connection.prepare_cached(statement)?;
            let mut rows = select.query([most])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                found.extend(candidate(row));
            }
            Ok(found)
        };
        let read = move |_: &super::Archive, connection: &Connection| {
            select(connection).map_err(JournalError::storage("looking for the oldest tasks"))
        };
        self.shared.archive.read_long(read).await
    }

    /// Drops the oldest events below a revision, a few of them; those that a task is known by stay,
    /// and are told to nobody. True: there are more.
    pub async fn compact(&self, up_to: Revision) -> Result<bool, JournalError> {
        // The latest event stays: it has the number that the next one follows on.
        let up_to = up_to.min(self.head());
        let step = Revision(self.oldest().0 + EVENTS_AT_ONCE).min(up_to);
        if step > self.oldest() {
            self.shared.writer.compact(step).await?;
        }
        Ok(step < up_to)
    }
}

/// None where its id is none: nobody could ask for it either.
fn candidate(row: &Row<'_>) -> Option<Candidate> {
    let id: String = row.get(0).ok()?;
    Some(Candidate {
        id: id.parse().ok()?,
        output_bytes: row.get(1).map_or(0, uint),
        ended: Timestamp(row.get(2).map_or(0, uint)),
    })
}
