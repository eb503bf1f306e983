//! The truth, and the only road to watchers: every fact, in order, on disk before it is delivered.
//!
//! It owns the file `journal.db` and the directory `waiting` of the state directory, the revisions, the sequence numbers of tasks,
//! and the part of all that is in memory. It knows nothing of processes, of the rules of a task's life
//! (beyond that a task begins once and ends once), or of watchers. No output of a task is ever in it.
//!
//! ```text
//! append, remove ──> write (one at a time) ──> journal.db ──> read ──> finished tasks, old events
//!                      │ after the commit
//!                      └─> live state ──> live tasks, newest events, the revision that wakes watchers
//! ```
//!
//! | folder | what it owns |
//! | --- | --- |
//! | `file` | the file, its tables, the check of its WAL, the epoch |
//! | `write` | the write operation, group commit, the writer thread, the reserve for a full disk |
//! | `waiting` | the requests of tasks that have not started |
//! | `read` | the live state, events, lists, lookups |
//! | `prune` | the choice of what to delete, and the counters it is based on |
//! | `meters` | counts and times, for the metrics |
//!
//! Guarantees:
//!
//! - An append that has returned survives the death of every process; with [`Durability::Power`] that
//!   of the machine, too.
//! - Revisions have no gap and are never used twice within an epoch; sequence numbers are never used
//!   twice. An append that failed has used no revision.
//! - Nothing is delivered before it is durable. A wake-up carries a revision, and the watcher reads.
//! - Memory is that of the live tasks and of bounded caches: a finished task costs disk only.
//! - A record that cannot be read costs itself.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod error;
mod file;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod meters;
mod past;
mod prune;
mod read;
mod record;
mod request;
mod sql;
#[cfg(test)]
mod tests;
mod waiting;
mod write;

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use uuid::Uuid;

use self::{
    file::Identity,
    prune::{Delivered, Totals},
    read::{LiveState, ReadPool},
    waiting::WaitingRequests,
    write::{Change, WorkChange, Writer},
};
use crate::task::{
    Block, Event, EventKind, IdKey, QueueSettings, Seq, SpawnRequest, Task, TaskId, TaskMessage,
    TaskUid, ValueDigest,
};

pub(crate) use error::{DiskTrouble, ReadError};
pub(crate) use error::{JournalError, RecordError};
pub use past::Past;
pub(crate) use prune::{Candidate, FinishedClass, FinishedTotals};
pub(crate) use read::{ListQuery, LiveSession, MessageEntry, Position, SessionQuery, WorkRecord};
pub(crate) use request::TextDigest;
pub(crate) use write::Allocate;

/// The failures that an append survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The death of any process.
    #[default]
    Process,
    /// The death of the machine, too, at the price of a sync for each group of facts.
    Power,
}

/// The kernel's id of the current boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot(pub [u8; 16]);

/// A fact to append.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Any kind but Removed, which is for `Journal::remove` alone.
    pub kind: EventKind,
    /// The task right after the event; its revision is ignored.
    pub task: Task,
    /// The request, with Created. It is kept until a task that has to wait has started; of one with a
    /// `request_id`, a digest is kept as long as its task.
    pub request: Option<SpawnRequest>,
}

/// A request that was made before.
#[derive(Debug, Clone)]
pub(crate) struct PriorRequest {
    /// The task that it created.
    pub(crate) task: Arc<Task>,
    /// True if it was the same request; its `request_id` was.
    pub(crate) is_same: bool,
    /// The event with which it was answered: Created, if the task had to wait and replaces no other;
    /// else the first event with the leader running or, if it never ran, the end. None: not yet.
    pub(crate) answer: Option<Arc<Event>>,
}

/// The journal's memory of an id that belongs to no task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Its task was removed.
    Removed,
    /// Nothing: no task ever had it, or the record of its task cannot be read.
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
    seqs: SeqNumbers,
    live: Arc<LiveState>,
    totals: Arc<Totals>,
    delivered: Delivered,
    pool: Arc<ReadPool>,
    waiting: Arc<WaitingRequests>,
    path: PathBuf,
    writer: Writer,
}

/// The sequence numbers of new tasks.
#[derive(Debug)]
struct SeqNumbers {
    /// The first number that was not recorded when the journal was opened.
    recorded: u64,
    /// The first number given out since.
    first: AtomicU64,
    next: AtomicU64,
}

impl Journal {
    /// Opens the journal of an existing state directory, or creates it. A file that this version does
    /// not understand is refused and left as it is.
    ///
    /// The caller makes sure that no other server has it open.
    pub fn open(dir: &Path, durability: Durability, boot: Boot) -> Result<Self, JournalError> {
        let path = file::path(dir);
        let opened = Self::open_file(&path, durability, boot);
        opened.map_err(JournalError::while_opening(&path))
    }

    fn open_file(path: &Path, durability: Durability, boot: Boot) -> Result<Self, JournalError> {
        let (connection, identity) = file::open_writer(path, durability, boot)?;
        let (oldest, head) = read::bounds(&connection)?;
        let seqs = SeqNumbers::after(read::highest_seq(&connection)?);
        let live = Arc::new(LiveState::new(head, read::live_tasks(&connection)?));
        let totals = Arc::new(Totals::new(oldest));
        let tasks = live.tasks();
        let state_dir = path.parent().unwrap_or(path);
        let tasks = tasks.iter().map(|task| &**task);
        let waiting = Arc::new(WaitingRequests::open(state_dir, durability, tasks));
        let checkpointer = file::open_checkpointer(path)?;
        let writer = Writer::start(
            connection,
            checkpointer,
            Arc::clone(&live),
            Arc::clone(&totals),
            Arc::clone(&waiting),
            &identity,
            durability,
        );
        let writer = writer.map_err(|source| JournalError::Open {
            path: path.into(),
            source,
        })?;
        let pool = ReadPool::start(path.into(), Arc::clone(&live));
        let pool = pool.map_err(|source| JournalError::Open {
            path: path.into(),
            source,
        })?;
        let shared = Shared {
            identity,
            seqs,
            pool: Arc::new(pool),
            live,
            totals,
            delivered: Delivered::new(),
            waiting,
            path: path.into(),
            writer,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Reports whether a state directory has no journal, so that [`Journal::open`] would create one.
    pub(crate) fn is_missing(dir: &Path) -> bool {
        file::is_missing(&file::path(dir))
    }

    /// Begins to keep space with which tasks can be stopped, ended and removed on a full disk. Fails where
    /// the file system cannot allocate space ahead.
    pub(crate) fn keep_reserve(&self, allocate: Allocate) -> io::Result<()> {
        let Shared { writer, path, .. } = &*self.shared;
        writer.keep_reserve(path, allocate)
    }

    /// The id under which revisions are unique; a new one begins where facts may have been lost.
    pub(crate) fn epoch(&self) -> Uuid {
        self.shared.identity.epoch
    }

    /// The id of the state directory; made once, with its journal.
    pub(crate) fn directory_id(&self) -> Uuid {
        self.shared.identity.directory_id
    }

    /// The secret of a task, which its processes prove themselves with over TCP.
    pub(crate) fn task_secret(&self, uid: TaskUid) -> String {
        self.shared.identity.request_key.task_secret(uid)
    }

    /// Reports whether this is the secret of a task. Compares in constant time.
    pub(crate) fn is_task_secret(&self, uid: TaskUid, secret: &str) -> bool {
        self.shared.identity.request_key.is_task_secret(uid, secret)
    }

    /// The digests of a request's environment variables, by name.
    pub(crate) fn variable_digests(&self, request: &SpawnRequest) -> BTreeMap<String, ValueDigest> {
        let key = &self.shared.identity.request_key;
        let digest = |(name, value): (&String, &String)| (name.clone(), key.value(name, value));
        request.variables.iter().map(digest).collect()
    }

    /// The key of this state directory's task ids; made once, with its journal.
    pub fn id_key(&self) -> IdKey {
        self.shared.identity.id_key
    }

    /// A number for a new task that no task ever had. It is recorded with the task's Created event.
    pub fn next_seq(&self) -> Seq {
        Seq(self.shared.seqs.next.fetch_add(1, Ordering::Relaxed))
    }

    /// The number that [`Journal::next_seq`] returns next.
    pub(crate) fn upcoming_seq(&self) -> Seq {
        Seq(self.shared.seqs.next.load(Ordering::Relaxed))
    }

    /// Skips the numbers up to this one; to be called before the first is given out.
    pub(crate) fn pass_over(&self, seq: Seq) {
        for next in [&self.shared.seqs.next, &self.shared.seqs.first] {
            next.fetch_max(seq.0 + 1, Ordering::Relaxed);
        }
    }

    /// Makes a fact durable, then wakes the watchers.
    ///
    /// Dropping the future does not take the fact back: it may or may not be appended.
    pub async fn append(&self, entry: Entry) -> Result<Arc<Event>, JournalError> {
        self.shared.writer.append(entry).await
    }

    /// Removes finished tasks: all of them or, if one is live or unknown, none. Returns their Removed
    /// events, which have their last states.
    pub(crate) async fn remove(&self, ids: Vec<TaskId>) -> Result<Vec<Arc<Event>>, JournalError> {
        self.shared.writer.write(Change::Remove(ids)).await
    }

    /// Makes the settings of a queue durable.
    pub(crate) async fn set_queue(
        &self,
        name: String,
        settings: QueueSettings,
    ) -> Result<(), JournalError> {
        let change = Change::SetQueue { name, settings };
        self.shared.writer.write(change).await.map(drop)
    }

    /// Makes the reattach window of a session with owners durable; `None`: it has no owner any more.
    pub(crate) async fn set_owned(
        &self,
        session_id: String,
        reattach_window: Option<Duration>,
    ) -> Result<(), JournalError> {
        let change = Change::SetOwned {
            session_id,
            reattach_window,
        };
        self.shared.writer.write(change).await.map(drop)
    }

    /// Makes the record of a task's work durable, with the blocks that were added.
    pub(crate) async fn report(
        &self,
        seq: Seq,
        record: WorkRecord,
        blocks: Vec<Block>,
    ) -> Result<(), JournalError> {
        let change = WorkChange::Report { record, blocks };
        self.change_work(seq, change).await
    }

    /// Makes a message durable. Its number is one more than that of the latest one.
    pub(crate) async fn put_message(
        &self,
        seq: Seq,
        message: TaskMessage,
        digest: TextDigest,
    ) -> Result<(), JournalError> {
        let change = WorkChange::PutMessage { message, digest };
        self.change_work(seq, change).await
    }

    /// Makes it durable that the worker of a task has received all messages up to a number.
    pub(crate) async fn receive_messages(&self, seq: Seq, up_to: u64) -> Result<(), JournalError> {
        self.change_work(seq, WorkChange::ReceiveMessages { up_to })
            .await
    }

    async fn change_work(&self, seq: Seq, change: WorkChange) -> Result<(), JournalError> {
        let change = Change::Work { seq, change };
        self.shared.writer.commit(change).await.map(drop)
    }

    /// The keyed digest of a message's text.
    pub(crate) fn digest(&self, text: &str) -> TextDigest {
        self.shared.identity.request_key.digest_of_text(text)
    }

    /// Accepts no more facts, and returns when the accepted ones are durable and the WAL is empty.
    /// Reading goes on.
    pub async fn close(&self) -> Result<(), JournalError> {
        self.shared.writer.close().await
    }
}

impl SeqNumbers {
    fn after(Seq(highest): Seq) -> Self {
        let recorded = highest + 1;
        Self {
            recorded,
            first: AtomicU64::new(recorded),
            next: AtomicU64::new(recorded),
        }
    }
}
