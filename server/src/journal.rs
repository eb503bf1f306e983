//! The truth, and the only road to watchers: every fact, in order, on disk before it is told.
//!
//! It owns the file `journal.db` of the state directory, the revisions, the sequence numbers of
//! tasks and what of all that is in memory. It knows nothing of processes, of what may follow on
//! what (beyond that a task begins once and ends once) or of who is watching.
//!
//! ```text
//! append, remove ──> writer (one at a time) ──> journal.db ──> archive ──> finished tasks, old events
//!                       │ after the commit
//!                       └─> present ──> live tasks, newest events, the number that wakes watchers
//! ```
//!
//! What holds:
//!
//! - An append that has returned survives the death of every process; with [`Durability::Power`]
//!   that of the machine too.
//! - Revisions have no gap and are never used twice, and neither are sequence numbers. An append that
//!   failed has used no revision.
//! - Nothing is told before it is durable. A wake-up carries a number; whoever is woken reads.
//! - Memory is that of the live tasks and of bounded caches: a finished task costs disk only.
//! - A record that cannot be read costs itself.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod archive;
mod epoch;
mod error;
mod file;
mod finished;
mod holdings;
mod ledger;
mod list;
mod present;
mod queues;
mod record;
mod ring;
mod schema;
mod seen;
mod sessions;
mod shedding;
mod sql;
mod startup;
mod wal;
mod writer;

#[cfg(test)]
mod tests;

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::sync::watch;
use uuid::Uuid;

use self::{
    archive::{Archive, Batch},
    finished::{Found, Slice},
    holdings::Holdings,
    ledger::Draft,
    present::{LiveQuery, Present},
    schema::Identity,
    seen::Seen,
    writer::Writer,
};
use crate::task::{
    Event, EventKind, Fact, Filter, IdKey, Revision, Seq, SpawnRequest, Task, TaskId,
};

pub use error::{DiskTrouble, JournalError, ReadError, RecordError};
pub use holdings::Finished;
pub use list::{ListQuery, Page, Position};
pub use shedding::Candidate;

/// What an append has to survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The death of any process.
    #[default]
    Process,
    /// That of the machine too, at the price of a sync for each group of facts.
    Power,
}

/// The kernel's name for the boot of the machine that is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot(pub [u8; 16]);

/// A fact to be appended.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What happened. Removed is for [`Journal::remove`] alone.
    pub kind: EventKind,
    /// The task right after it; its revision is not looked at.
    pub task: Task,
    /// What was asked for, with Created. It is kept if it has a `request_id`, and otherwise only until a
    /// task that has to wait for its turn has begun.
    pub request: Option<SpawnRequest>,
}

/// A request that was made before.
#[derive(Debug, Clone)]
pub struct PriorRequest {
    /// The task that it created.
    pub task: Arc<Task>,
    /// As it was made.
    pub request: SpawnRequest,
    /// What it was answered with: Created, where it had to wait for its turn and replaces nobody; else
    /// the first event at which the leader had run or, where it never did, the end. None: neither has
    /// come yet.
    pub answer: Option<Arc<Event>>,
}

/// What is known of an id that no task has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Its task was removed.
    Removed,
    /// Nothing: no task here ever had it, or the record of the one that has it cannot be read.
    None,
}

/// A handle on the journal; its clones are the same journal.
#[derive(Debug, Clone)]
pub struct Journal {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    identity: Identity,
    /// The first number that the journal did not know of when it was opened.
    recorded_seq: u64,
    /// The first that may have been given out since.
    first_seq: AtomicU64,
    next_seq: AtomicU64,
    present: Arc<Present>,
    holdings: Arc<Holdings>,
    seen: Seen,
    archive: Arc<Archive>,
    writer: Writer,
}

impl Journal {
    /// Opens the journal of a state directory, which must be there, or begins it. A file that this
    /// version does not understand is refused and left as it is.
    ///
    /// That no other server has it open is for the caller to see to.
    pub fn open(dir: &Path, durability: Durability, boot: Boot) -> Result<Self, JournalError> {
        let path = file::file(dir);
        let opened = Self::open_file(&path, durability, boot);
        opened.map_err(JournalError::while_opening(&path))
    }

    fn open_file(path: &Path, durability: Durability, boot: Boot) -> Result<Self, JournalError> {
        let (connection, identity) = file::open_writer(path, durability, boot)?;
        let (oldest, head) = startup::bounds(&connection)?;
        let recorded_seq = startup::highest_seq(&connection)?.0 + 1;
        let present = Arc::new(Present::new(head, startup::live_tasks(&connection)?));
        let holdings = Arc::new(Holdings::new(oldest));
        let checkpointer = file::open_checkpointer(path)?;
        let shared = (Arc::clone(&present), Arc::clone(&holdings));
        let writer = Writer::start(connection, checkpointer, shared.0, shared.1, durability);
        let writer = writer.map_err(|source| JournalError::Open {
            path: path.into(),
            source,
        })?;
        let archive = Arc::new(Archive::new(path.into(), Arc::clone(&present)));
        let shared = Shared {
            identity,
            recorded_seq,
            first_seq: AtomicU64::new(recorded_seq),
            next_seq: AtomicU64::new(recorded_seq),
            present,
            holdings,
            seen: Seen::new(),
            archive,
            writer,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Whether a state directory has no journal, so that [`Journal::open`] would begin one.
    pub fn is_missing(dir: &Path) -> bool {
        file::is_missing(&file::file(dir))
    }

    /// The file that every fact is written to first. It may have room reserved in it, and must not
    /// be changed otherwise.
    pub fn wal_file(dir: &Path) -> PathBuf {
        file::wal(&file::file(dir))
    }

    /// What revisions belong to: a state directory, and the time since it last may have lost some that
    /// were told.
    pub fn epoch(&self) -> Uuid {
        self.shared.identity.epoch
    }

    /// Which state directory this is; made once, with its journal.
    pub fn directory_id(&self) -> Uuid {
        self.shared.identity.directory_id
    }

    /// The key of this state directory's task ids; made once, with its journal.
    pub fn id_key(&self) -> IdKey {
        self.shared.identity.id_key
    }

    /// The number of a new task, one that no task ever had. It is remembered from the task's
    /// Created on.
    pub fn next_seq(&self) -> Seq {
        Seq(self.shared.next_seq.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that will be given out next.
    pub fn upcoming_seq(&self) -> Seq {
        Seq(self.shared.next_seq.load(Ordering::Relaxed))
    }

    /// Gives out no number up to this one any more; before the first is given out.
    pub fn pass_over(&self, seq: Seq) {
        for next in [&self.shared.next_seq, &self.shared.first_seq] {
            next.fetch_max(seq.0 + 1, Ordering::Relaxed);
        }
    }

    /// Makes a fact durable, then tells it.
    ///
    /// Dropping the future does not take the fact back: it may or may not be appended.
    pub async fn append(&self, entry: Entry) -> Result<Arc<Event>, JournalError> {
        self.shared.writer.append(Draft::new(entry)?).await
    }

    /// Forgets finished tasks: all of them or, if one is not finished or not known, none. Their
    /// Removed events have their last states.
    pub async fn remove(&self, ids: Vec<TaskId>) -> Result<Vec<Arc<Event>>, JournalError> {
        self.shared.writer.remove(ids).await
    }

    /// The latest revision; 0 before the first.
    pub fn head(&self) -> Revision {
        self.shared.present.head()
    }

    /// The first revision whose event can still be read; 1 where nothing was ever forgotten.
    pub fn oldest(&self) -> Revision {
        self.shared.holdings.oldest()
    }

    /// The head, and a wake-up whenever it moves.
    pub fn watch(&self) -> watch::Receiver<Revision> {
        self.shared.present.watch()
    }

    /// What happened after a revision, in order and without a gap: at least one fact unless it is the
    /// head, at most `limit`.
    ///
    /// A damaged one is an error when it is the first; to go on behind it, ask after it.
    pub async fn facts_after(&self, after: Revision, limit: usize) -> Result<Vec<Fact>, ReadError> {
        let (oldest, newest) = (self.oldest(), self.head());
        if after > newest || after.0 + 1 < oldest.0 {
            return Err(ReadError::OutOfRange { oldest, newest });
        }
        let limit = limit.max(1);
        if let Some(facts) = self.shared.present.after(after, limit) {
            return Ok(facts);
        }
        match archive::facts_after(&self.shared.archive, after, limit).await? {
            Batch::Facts(facts) => Ok(facts),
            Batch::Dropped { oldest } => Err(ReadError::OutOfRange { oldest, newest }),
        }
    }

    /// What happened at a revision, if anything did and can still be told.
    pub async fn fact_at(&self, revision: Revision) -> Result<Option<Fact>, JournalError> {
        if revision < self.oldest() || revision > self.head() {
            return Ok(None);
        }
        let archive = &self.shared.archive;
        if let Some(weighed) = archive.remembered(revision) {
            return Ok(Some(weighed.fact));
        }
        let weighed = archive.read(|archive, connection| archive.fact(connection, revision))?;
        Ok(Some(weighed.fact))
    }

    /// The event at a revision that a task points to, told or not.
    fn recorded_at(&self, revision: Revision) -> Result<Arc<Event>, JournalError> {
        let archive = &self.shared.archive;
        let remembered = archive.remembered(revision);
        if let Some(record) = remembered.and_then(|weighed| weighed.task_record()) {
            return Ok(record.event);
        }
        let record = archive.read(|archive, connection| archive.event(connection, revision))?;
        Ok(record.event)
    }

    /// A task, live or finished, as it is now.
    pub async fn task(&self, id: &TaskId) -> Result<Option<Arc<Task>>, JournalError> {
        if let Some(live) = self.shared.present.task(id) {
            return Ok(Some(live.task));
        }
        let record = self.finished(id, |finished| finished.latest)?;
        Ok(record.map(|event| Arc::clone(&event.task)))
    }

    /// Those of the ids that no task has, live or finished.
    pub async fn unknown(&self, ids: Vec<TaskId>) -> Result<Vec<(TaskId, Memory)>, JournalError> {
        let key = self.id_key();
        let shared = &self.shared;
        // Those between what was recorded and what was given out first are of tasks that were lost.
        let lost = Seq(shared.recorded_seq)..Seq(shared.first_seq.load(Ordering::Relaxed));
        let given_out = Seq(shared.next_seq.load(Ordering::Relaxed));
        let had_a_task = move |seq: Seq| seq < given_out && !lost.contains(&seq);
        let read = move |archive: &Archive, connection: &_| {
            archive.unknown(connection, ids, key, had_a_task)
        };
        self.shared.archive.read_long(read).await
    }

    /// What a task's Spawn was answered with: see [`PriorRequest::answer`].
    pub async fn first_answer(&self, id: &TaskId) -> Result<Option<Arc<Event>>, JournalError> {
        match self.shared.present.task(id) {
            Some(live) => match live.answer() {
                Some(revision) => self.recorded_at(revision).map(Some),
                None => Ok(None),
            },
            None => self.finished(id, |finished| finished.answer),
        }
    }

    fn finished(
        &self,
        id: &TaskId,
        which: fn(archive::Finished) -> Revision,
    ) -> Result<Option<Arc<Event>>, JournalError> {
        self.shared.archive.read(|archive, connection| {
            let finished = archive::finished(connection, id)?;
            let event = finished.map(|finished| archive.event(connection, which(finished)));
            Ok(event.transpose()?.map(|record| record.event))
        })
    }

    /// The request that was made under this id, as long as its task is remembered.
    pub async fn find_request(
        &self,
        request_id: &str,
    ) -> Result<Option<PriorRequest>, JournalError> {
        let archive = &self.shared.archive;
        archive.read(|archive, connection| archive.prior_request(connection, request_id))
    }

    /// The finished tasks that match and have ended after one revision and before another, in the order
    /// of their ends; those whose record cannot be read are left out.
    pub async fn ended_within(
        &self,
        after: Revision,
        before: Revision,
        filter: Filter,
    ) -> Result<Vec<Arc<Task>>, JournalError> {
        let read = move |archive: &Archive, connection: &_| {
            let slice = Slice::Within(after, before);
            let found = finished::find(connection, &filter, slice, None, usize::MAX)?;
            let event = |found: Found| archive.event(connection, found.latest).ok();
            let mut ended: Vec<_> = found.into_iter().filter_map(event).collect();
            ended.sort_by_key(|weighed| weighed.event.revision);
            let task = |record: ring::TaskRecord| Arc::clone(&record.event.task);
            Ok(ended.into_iter().map(task).collect())
        };
        self.shared.archive.read_long(read).await
    }

    /// One page of a list.
    pub async fn list(&self, query: ListQuery) -> Result<Page, JournalError> {
        list::page(&self.shared.archive, &self.shared.present, query).await
    }

    /// Every live task that matches, newest first, and the revision at which this was true: what
    /// follows are the events after it. Unlike a page, it is never cut.
    pub fn snapshot(&self, filter: &Filter) -> (Vec<Arc<Task>>, Revision) {
        let everything = LiveQuery {
            filter,
            created_by: None,
            below: None,
            limit: usize::MAX,
        };
        let (revision, live) = self.shared.present.list(&everything);
        (live.into_iter().map(|live| live.task).collect(), revision)
    }

    /// Every live task, oldest first.
    pub async fn live(&self) -> Result<Vec<Arc<Task>>, JournalError> {
        Ok(self.shared.present.live())
    }

    /// Takes no more facts, and returns when those under way are durable and the file is in order.
    /// Reading goes on.
    pub async fn close(&self) -> Result<(), JournalError> {
        self.shared.writer.close().await
    }
}
