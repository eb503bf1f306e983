//! Group commit: takes the operations that wait, and writes them in one transaction.

use std::{path::Path, sync::Arc, time::Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};
use tokio::sync::mpsc;

use super::{
    BATCH,
    operation::{Batch, WriteOperation},
    reserve::{Reserve, Space, UseOfReserve},
    sessions::SessionCounts,
};
use crate::{
    crash,
    journal::{
        JournalError,
        file::{self, epoch},
        prune::Totals,
        read::{LiveState, SizedFact},
        waiting::{self, WaitingRequests},
    },
    task::{Event, Fact, IdKey, Revision, Timestamp},
};

/// Events in the WAL at which they are moved into the main file: 18 MiB if each has a commit of its
/// own, which a returning server reads in some 20 ms.
const CHECKPOINT_EVENTS: u64 = 1024;

/// The connection that writes, and the queue of what to write.
#[derive(Debug)]
pub(super) struct WriteBatcher {
    pub(super) connection: Connection,
    pub(super) live: Arc<LiveState>,
    totals: Arc<Totals>,
    waiting: Arc<WaitingRequests>,
    id_key: IdKey,
    sessions: SessionCounts,
    queue: mpsc::Receiver<WriteOperation>,
    /// None until the process layer has said how to allocate, and where the file system cannot.
    pub(super) reserve: Option<Reserve>,
    /// Growth of the WAL since the last checkpoint, in events.
    since_checkpoint: u64,
}

/// A transaction that was committed.
#[derive(Debug)]
struct Committed {
    facts: Vec<SizedFact>,
    /// For each operation, the number of facts up to its last one.
    ends: Vec<usize>,
    oldest: Revision,
}

impl WriteBatcher {
    pub(super) fn new(
        connection: Connection,
        live: Arc<LiveState>,
        totals: Arc<Totals>,
        waiting: Arc<WaitingRequests>,
        id_key: IdKey,
        queue: mpsc::Receiver<WriteOperation>,
    ) -> Self {
        let tasks = live.tasks();
        Self {
            connection,
            sessions: SessionCounts::new(tasks.iter().map(|task| &**task)),
            live,
            totals,
            waiting,
            id_key,
            queue,
            reserve: None,
            since_checkpoint: 0,
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn needs_checkpoint(&self) -> bool {
        self.since_checkpoint >= CHECKPOINT_EVENTS
    }

    /// Reports whether a checkpoint is due, and counts it as done.
    pub(super) fn take_checkpoint(&mut self) -> bool {
        let due = self.needs_checkpoint();
        if due {
            self.since_checkpoint = 0;
        }
        due
    }

    /// Writes up to `limit` operations of the queue in one transaction.
    pub(super) fn write_up_to(&mut self, limit: usize) {
        let batch = std::iter::from_fn(|| self.queue.try_recv().ok())
            .take(limit)
            .collect();
        self.write(batch);
    }

    /// Accepts no more operations, writes those that were accepted, and empties the WAL.
    pub(super) fn finish(&mut self) -> rusqlite::Result<()> {
        self.queue.close();
        let mut batch = Vec::new();
        while self.queue.blocking_recv_many(&mut batch, BATCH) > 0 {
            self.write(std::mem::take(&mut batch));
        }
        let kept = Reserve::size(self.live.count());
        let path = Path::new(self.connection.path().unwrap_or_default());
        let last = || epoch::close(&self.connection);
        match file::retire_wal(&self.connection, path, kept, last) {
            // The WAL has everything, and the next server goes on with it.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull) => {
                tracing::warn!("the disk is full: the latest facts stay in the WAL");
                Ok(())
            }
            retired => retired,
        }
    }

    /// Makes the reserve whole, if it is not, and returns the space for writes.
    pub(super) fn secure_reserve(&mut self) -> Space {
        let live = self.live.count();
        let reserve = self.reserve.as_mut();
        reserve.map_or(Space::Free, |reserve| reserve.secure(live))
    }

    pub(super) fn is_disk_full(&self) -> bool {
        let reserve = self.reserve.as_ref();
        reserve.is_some_and(|reserve| reserve.space() == Space::ReserveOnly)
    }

    fn write(&mut self, mut operations: Vec<WriteOperation>) {
        if operations.is_empty() {
            return;
        }
        match self.secure_reserve() {
            Space::Free => {}
            Space::ReserveOnly => operations = without_refused(operations),
        }
        if !operations.is_empty() {
            self.write_together(operations);
        }
    }

    fn write_together(&mut self, mut operations: Vec<WriteOperation>) {
        match self.commit(&mut operations) {
            Ok(committed) => self.publish(operations, committed),
            Err(error) if operations.len() == 1 => {
                let path = Path::new(self.connection.path().unwrap_or_default());
                let error = error.naming_read_only_disk(&file::wal(path));
                // A caller that has stopped waiting needs no result.
                let _ = operations.remove(0).reply.send(Err(error));
            }
            Err(_) => operations
                .into_iter()
                .for_each(|operation| self.write_together(vec![operation])),
        }
    }

    /// Commits all of the operations, or none.
    fn commit(&mut self, operations: &mut [WriteOperation]) -> Result<Committed, JournalError> {
        let failed = || JournalError::storage("committing");
        let begun = Instant::now();
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(failed())?;
        let mut batch = Batch {
            connection: &transaction,
            id_key: self.id_key,
            live: &self.live,
            sessions: self.sessions.pending(),
            at: Timestamp::now(),
            oldest: self.totals.oldest(),
            next_revision: Revision(self.live.head().0 + 1),
            facts: Vec::with_capacity(operations.len()),
            upkeep: 0,
        };
        let mut ends = Vec::with_capacity(operations.len());
        for operation in operations {
            operation.change.apply(&mut batch)?;
            ends.push(batch.facts.len());
        }
        let Batch {
            sessions,
            facts,
            oldest,
            upkeep,
            ..
        } = batch;
        let counts = sessions.into_changes();
        match facts.is_empty() {
            true => crash::point("upkeep.before-commit"),
            false => crash::point("journal.before-commit"),
        }
        transaction.commit().map_err(failed())?;
        match facts.is_empty() {
            true => crash::point("upkeep.committed"),
            false => crash::point("journal.committed"),
        }
        self.totals.meters.count(&facts, begun.elapsed());
        self.sessions.apply(counts);
        self.since_checkpoint += facts.len() as u64 + upkeep;
        Ok(Committed {
            facts,
            ends,
            oldest,
        })
    }

    /// Makes the facts readable, then wakes watchers, then replies: a woken reader finds the facts.
    fn publish(&self, operations: Vec<WriteOperation>, committed: Committed) {
        let Committed {
            facts,
            ends,
            oldest,
        } = committed;
        // Advance the oldest revision before readers can ask for a dropped one.
        self.totals.raise_oldest(oldest);
        let mut results = Vec::with_capacity(ends.len());
        let mut start = 0;
        for end in ends {
            results.push(events(&facts[start..end]));
            start = end;
        }
        for sized in &facts {
            self.totals.count(&sized.fact);
            self.delete_request(&sized.fact);
        }
        self.live.publish(facts);
        for (operation, events) in operations.into_iter().zip(results) {
            let _ = operation.reply.send(Ok(events));
        }
    }

    /// Deletes the request of a task that waited, after a fact that makes it useless.
    fn delete_request(&self, fact: &Fact) {
        let Some(event) = fact.event() else { return };
        let waited = event.task.queued.is_some();
        if waited && !waiting::is_needed(&event.task) {
            self.waiting.delete(event.task.seq);
        }
    }
}

/// Refuses the operations that may not use the reserve, and returns the others.
fn without_refused(operations: Vec<WriteOperation>) -> Vec<WriteOperation> {
    let is_allowed =
        |operation: &WriteOperation| operation.change.use_of_reserve() == UseOfReserve::Allowed;
    let (allowed, refused): (Vec<_>, Vec<_>) = operations.into_iter().partition(is_allowed);
    for operation in refused {
        let _ = operation.reply.send(Err(JournalError::Reserved));
    }
    allowed
}

/// The events of tasks among some facts.
fn events(facts: &[SizedFact]) -> Vec<Arc<Event>> {
    let events = facts.iter().filter_map(|sized| sized.fact.event());
    events.cloned().collect()
}
