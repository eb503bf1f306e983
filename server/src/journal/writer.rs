//! The one place where anything is written: a desk, at which one sits at a time.
//!
//! ```text
//! append ──> jobs ──> whoever has the desk: transaction ──> commit ──> present ──> number ──> replies
//! ```
//!
//! A commit that only has to survive processes is a few writes to the page cache, and takes less
//! time than to wake another thread: so whoever appends sits down if the desk is free, and does what
//! lies there. If it is taken, or the commit has to wait for a disk, the journal's own thread is
//! told; it takes all that has come meanwhile into one transaction. The same thread moves the WAL
//! into the main file, which is where the syncs are, while others write on.
//!
//! Revisions are given out inside the transaction and counted only once it is committed, so that a
//! failure leaves no gap. A batch that fails is rolled back and done again one job at a time: each
//! failure is its own, and when the disk has space again the next job just works.

mod desk;

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::{Durability, JournalError, holdings::Holdings, ledger::Draft, present::Present};
use crate::task::{Event, QueueSettings, Revision, Seq, TaskId};
use desk::Desk;

/// How many jobs may wait. More would not be done sooner; who appends is held back instead.
const QUEUE: usize = 1024;

/// How many jobs one transaction takes: beyond this the commit is no longer what costs.
const BATCH: usize = 256;

/// How many of them an appender does in its own time, which is that of a whole runtime worker.
const BATCH_IN_PASSING: usize = 32;

/// Pages at which the WAL is long enough to hold up appenders for: 32 MiB.
const LONG_WAL: i64 = 8192;

/// Something to make durable.
#[derive(Debug)]
pub(super) enum Job {
    Append {
        draft: Box<Draft>,
        reply: Reply<Arc<Event>>,
    },
    Remove {
        ids: Vec<TaskId>,
        reply: Reply<Vec<Arc<Event>>>,
    },
    /// Drop the events below a revision.
    Compact { up_to: Revision, reply: Reply<()> },
    /// Write down whose ends have been seen.
    MarkSeen { seqs: Vec<Seq>, reply: Reply<()> },
    /// Write down how a queue is set.
    SetQueue {
        name: String,
        settings: QueueSettings,
        reply: Reply<()>,
    },
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

/// Where jobs are handed in.
#[derive(Debug)]
pub(super) struct Writer {
    durability: Durability,
    jobs: mpsc::Sender<Job>,
    office: Arc<Office>,
    /// None once it is being joined.
    clerk: Mutex<Option<JoinHandle<rusqlite::Result<()>>>>,
    clerk_thread: thread::Thread,
}

/// What the appenders and the thread share.
#[derive(Debug)]
struct Office {
    desk: Mutex<Desk>,
    closing: AtomicBool,
}

impl Writer {
    /// Starts the thread; `checkpointer` is a second connection, for its use.
    pub(super) fn start(
        connection: Connection,
        checkpointer: Connection,
        present: Arc<Present>,
        holdings: Arc<Holdings>,
        durability: Durability,
    ) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let desk = Mutex::new(Desk::new(connection, present, holdings, queue));
        let office = Arc::new(Office {
            desk,
            closing: AtomicBool::new(false),
        });
        let clerk = {
            let office = Arc::clone(&office);
            let thread = thread::Builder::new().name("journal".into());
            thread.spawn(move || office.serve(&checkpointer))?
        };
        let clerk_thread = clerk.thread().clone();
        Ok(Self {
            durability,
            jobs,
            office,
            clerk: Mutex::new(Some(clerk)),
            clerk_thread,
        })
    }

    /// Makes a fact durable.
    pub(super) async fn append(&self, draft: Draft) -> Result<Arc<Event>, JournalError> {
        let (reply, mut answer) = oneshot::channel();
        let draft = Box::new(draft);
        self.jobs
            .send(Job::Append { draft, reply })
            .await
            .map_err(|_| JournalError::Closed)?;
        match self.durability {
            Durability::Process => {
                // Whoever else has a fact in hand now puts it into the same transaction.
                tokio::task::yield_now().await;
                if let Ok(written) = answer.try_recv() {
                    return written;
                }
                self.write_in_passing();
            }
            Durability::Power => self.clerk_thread.unpark(),
        }
        answer.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Forgets tasks; there may be a great many.
    pub(super) async fn remove(&self, ids: Vec<TaskId>) -> Result<Vec<Arc<Event>>, JournalError> {
        self.hand_over(|reply| Job::Remove { ids, reply }).await
    }

    /// Drops the events below a revision, but for those that a task is known by.
    pub(super) async fn compact(&self, up_to: Revision) -> Result<(), JournalError> {
        self.hand_over(|reply| Job::Compact { up_to, reply }).await
    }

    /// Writes down whose ends have been seen.
    pub(super) async fn mark_seen(&self, seqs: Vec<Seq>) -> Result<(), JournalError> {
        self.hand_over(|reply| Job::MarkSeen { seqs, reply }).await
    }

    /// Writes down how a queue is set.
    pub(super) async fn set_queue(
        &self,
        name: String,
        settings: QueueSettings,
    ) -> Result<(), JournalError> {
        self.hand_over(|reply| Job::SetQueue {
            name,
            settings,
            reply,
        })
        .await
    }

    /// Does something while nothing is being committed.
    pub(super) fn between_commits<T>(&self, what: impl FnOnce() -> T) -> T {
        let _desk = self.office.desk();
        what()
    }

    /// Has the thread do it.
    async fn hand_over<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, JournalError> {
        let (reply, answer) = oneshot::channel();
        self.jobs
            .send(job(reply))
            .await
            .map_err(|_| JournalError::Closed)?;
        self.clerk_thread.unpark();
        answer.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Whoever finds the desk taken tells the thread, which sits down after: no job is left lying.
    fn write_in_passing(&self) {
        let mut desk = match self.office.desk.try_lock() {
            Ok(desk) => desk,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.clerk_thread.unpark(),
        };
        desk.serve_up_to(BATCH_IN_PASSING);
        if desk.has_work() || desk.needs_checkpoint() {
            drop(desk);
            self.clerk_thread.unpark();
        }
    }

    /// Takes no more jobs; ends when those that were taken are done and the WAL is empty.
    pub(super) async fn close(&self) -> Result<(), JournalError> {
        let clerk = self
            .clerk
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(clerk) = clerk else { return Ok(()) };
        self.dismiss();
        let joined = tokio::task::spawn_blocking(move || clerk.join()).await;
        match joined {
            Ok(Ok(checkpointed)) => checkpointed.map_err(JournalError::storage("closing")),
            Ok(Err(_)) | Err(_) => Err(JournalError::Closed),
        }
    }

    fn dismiss(&self) {
        self.office.closing.store(true, Ordering::Release);
        self.clerk_thread.unpark();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.dismiss();
    }
}

impl Office {
    /// The thread's work: told once is enough, however often it was told.
    fn serve(&self, checkpointer: &Connection) -> rusqlite::Result<()> {
        while !self.closing.load(Ordering::Acquire) {
            let mut desk = self.desk();
            while desk.has_work() {
                desk.serve_up_to(BATCH);
            }
            let checkpoint = desk.take_checkpoint();
            drop(desk);
            if checkpoint && let Err(error) = self.checkpoint(checkpointer) {
                // The WAL has it all, and the next checkpoint is not far.
                tracing::warn!(%error, "the journal's WAL could not be moved on");
            }
            thread::park();
        }
        self.desk().finish()
    }

    /// Moves the WAL on while others write to it; then, if they never paused, the rest while they
    /// wait, since it is only begun anew when nothing is left in it.
    fn checkpoint(&self, checkpointer: &Connection) -> rusqlite::Result<()> {
        let pages_left = || {
            checkpointer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
        };
        let (all, moved) = pages_left()?;
        if all > LONG_WAL && moved < all {
            let _desk = self.desk();
            pages_left()?;
        }
        Ok(())
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        // A transaction that was cut short is rolled back as it is dropped.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
