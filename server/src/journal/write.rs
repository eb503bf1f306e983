//! The write path: one connection, used by one thread at a time.
//!
//! ```text
//! append ──> queue of write operations ──> batcher: transaction ──> commit ──> memory ──> replies
//! ```
//!
//! A commit that only has to survive processes is a few writes to the page cache, and takes less time
//! than waking another thread. So an appender that finds the batcher free writes the queue itself. If
//! the batcher is in use, or the commit has to wait for a disk, the writer thread is woken; it writes
//! everything that has arrived meanwhile in one transaction. The same thread moves the WAL into the
//! main file, which is where the syncs are, while others go on writing.
//!
//! Revisions are given out inside the transaction and counted only once it is committed, so a failure
//! leaves no gap. A batch that fails is rolled back and written again one operation at a time: an
//! operation fails for its own reasons only, and works again once the disk has space.

mod append;
mod batcher;
mod draft;
mod operation;
mod owned_session;
mod queue;
mod remove;
mod reserve;
mod sessions;
#[cfg(test)]
mod tests;
mod work;

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use self::{
    batcher::WriteBatcher,
    operation::{WriteOperation, Written},
    reserve::Reserve,
};
use super::{
    Durability, Entry, JournalError,
    file::Identity,
    prune::Totals,
    read::LiveState,
    request::RequestKey,
    waiting::{self, WaitingRequests},
};
use crate::task::Event;

pub(super) use operation::{Batch, Change};
pub(super) use work::{WorkChange, places};

pub(crate) use reserve::Allocate;

/// Operations that may wait. A longer queue would not make writes faster, so further appenders wait.
const QUEUE: usize = 1024;

/// Operations in one transaction: beyond this the commit is no longer what costs.
const BATCH: usize = 256;

/// Operations that an appender writes itself, in the time of a whole runtime worker.
const BATCH_IN_PLACE: usize = 32;

/// Length of the WAL, in pages, at which appenders wait while it is emptied: 32 MiB.
const LONG_WAL: i64 = 8192;

/// The interval of attempts to take the reserve again while the disk is full.
const RESERVE_RETRY: Duration = Duration::from_secs(1);

/// Accepts write operations.
#[derive(Debug)]
pub(super) struct Writer {
    durability: Durability,
    request_key: RequestKey,
    waiting: Arc<WaitingRequests>,
    operations: mpsc::Sender<WriteOperation>,
    shared: Arc<Shared>,
    /// None once it is being joined.
    thread: Mutex<Option<JoinHandle<rusqlite::Result<()>>>>,
    waker: thread::Thread,
}

/// State shared by the appenders and the writer thread.
#[derive(Debug)]
struct Shared {
    batcher: Mutex<WriteBatcher>,
    closing: AtomicBool,
}

impl Writer {
    /// Starts the writer thread; `checkpointer` is a second connection, for its use.
    pub(super) fn start(
        connection: Connection,
        checkpointer: Connection,
        live: Arc<LiveState>,
        totals: Arc<Totals>,
        waiting: Arc<WaitingRequests>,
        identity: &Identity,
        durability: Durability,
    ) -> io::Result<Self> {
        let (operations, queue) = mpsc::channel(QUEUE);
        let batcher = WriteBatcher::new(
            connection,
            live,
            totals,
            Arc::clone(&waiting),
            identity.id_key,
            queue,
        );
        let shared = Arc::new(Shared {
            batcher: Mutex::new(batcher),
            closing: AtomicBool::new(false),
        });
        let thread = {
            let shared = Arc::clone(&shared);
            let thread = thread::Builder::new().name("journal".into());
            thread.spawn(move || shared.run(&checkpointer))?
        };
        let waker = thread.thread().clone();
        Ok(Self {
            durability,
            request_key: identity.request_key.clone(),
            waiting,
            operations,
            shared,
            thread: Mutex::new(Some(thread)),
            waker,
        })
    }

    /// Begins to keep space for the facts of a full disk. Fails where the file system cannot.
    pub(super) fn keep_reserve(&self, journal: &Path, allocate: Allocate) -> io::Result<()> {
        let mut batcher = self.shared.batcher();
        let live = batcher.live.count();
        batcher.reserve = Some(Reserve::new(journal, allocate, live)?);
        Ok(())
    }

    /// Makes one fact durable, after the request of a task that has to wait.
    pub(super) async fn append(&self, entry: Entry) -> Result<Arc<Event>, JournalError> {
        let seq = entry.task.seq;
        let request = entry.request.as_ref();
        let Some(request) = request.filter(|_| waiting::is_needed(&entry.task)) else {
            return self.append_event(entry).await;
        };
        self.waiting.put(seq, request)?;
        let appended = self.append_event(entry).await;
        if appended.is_err() {
            self.waiting.delete(seq);
        }
        appended
    }

    async fn append_event(&self, entry: Entry) -> Result<Arc<Event>, JournalError> {
        let change = Change::append(entry, &self.request_key)?;
        let mut events = self.commit(change).await?;
        Ok(events.pop().expect("an append makes one event"))
    }

    /// Makes a change durable as soon as possible, and returns the events of it.
    pub(super) async fn commit(&self, change: Change) -> Result<Vec<Arc<Event>>, JournalError> {
        let mut reply = self.submit(change).await?;
        let written = match self.durability {
            Durability::Process => {
                // Other appenders that are ready now get into the same transaction.
                tokio::task::yield_now().await;
                match reply.try_recv() {
                    Ok(written) => Ok(written),
                    Err(_) => {
                        self.write_in_place();
                        reply.await
                    }
                }
            }
            Durability::Power => {
                self.waker.unpark();
                reply.await
            }
        };
        written.unwrap_or(Err(JournalError::Closed))
    }

    /// Has the writer thread make a change durable, and returns the events of it.
    pub(super) async fn write(&self, change: Change) -> Result<Vec<Arc<Event>>, JournalError> {
        let reply = self.submit(change).await?;
        self.waker.unpark();
        reply.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Runs something while nothing is being committed.
    pub(super) fn between_commits<T>(&self, run: impl FnOnce() -> T) -> T {
        let _batcher = self.shared.batcher();
        run()
    }

    /// Accepts no more operations; returns when the accepted ones are durable and the WAL is empty.
    pub(super) async fn close(&self) -> Result<(), JournalError> {
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(thread) = thread else { return Ok(()) };
        self.end_thread();
        match tokio::task::spawn_blocking(move || thread.join()).await {
            Ok(Ok(checkpointed)) => checkpointed.map_err(JournalError::storage("closing")),
            Ok(Err(_)) | Err(_) => Err(JournalError::Closed),
        }
    }

    async fn submit(&self, change: Change) -> Result<oneshot::Receiver<Written>, JournalError> {
        let (reply, written) = oneshot::channel();
        let operation = WriteOperation { change, reply };
        let sent = self.operations.send(operation).await;
        sent.map_err(|_| JournalError::Closed)?;
        Ok(written)
    }

    /// If the batcher is in use, the writer thread is woken and writes after: nothing is forgotten.
    fn write_in_place(&self) {
        let mut batcher = match self.shared.batcher.try_lock() {
            Ok(batcher) => batcher,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return self.waker.unpark(),
        };
        batcher.write_up_to(BATCH_IN_PLACE);
        if batcher.has_work() || batcher.needs_checkpoint() || batcher.is_disk_full() {
            drop(batcher);
            self.waker.unpark();
        }
    }

    fn end_thread(&self) {
        self.shared.closing.store(true, Ordering::Release);
        self.waker.unpark();
    }
}

impl Drop for Writer {
    /// Waits for the thread, so that no connection of this journal is left when it is opened again.
    fn drop(&mut self) {
        self.end_thread();
        let thread = self.thread.get_mut();
        if let Some(thread) = thread.unwrap_or_else(PoisonError::into_inner).take() {
            // The result of the last checkpoint is of no use to a journal that was not closed.
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// The writer thread. Woken once is enough, however many operations wait.
    fn run(&self, checkpointer: &Connection) -> rusqlite::Result<()> {
        while !self.closing.load(Ordering::Acquire) {
            let mut batcher = self.batcher();
            while batcher.has_work() {
                batcher.write_up_to(BATCH);
            }
            let checkpoint = batcher.take_checkpoint();
            drop(batcher);
            if checkpoint && let Err(error) = self.checkpoint(checkpointer) {
                // The WAL still has everything, and the next checkpoint comes soon.
                tracing::warn!(%error, "journal checkpoint failed; will retry");
            }
            self.sleep();
        }
        self.batcher().finish()
    }

    /// Waits for work. On a full disk, takes the reserve again as soon as there is space.
    fn sleep(&self) {
        let is_full = self.batcher().is_disk_full();
        match is_full {
            false => thread::park(),
            true => {
                thread::park_timeout(RESERVE_RETRY);
                self.batcher().secure_reserve();
            }
        }
    }

    /// Moves the WAL into the main file while others write to it. If they never pause, moves the rest
    /// while they wait: the WAL begins anew only when nothing is left in it.
    fn checkpoint(&self, checkpointer: &Connection) -> rusqlite::Result<()> {
        let checkpoint = || {
            checkpointer.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
                Ok((row.get::<_, i64>(1)?, row.get::<_, i64>(2)?))
            })
        };
        let (all, moved) = checkpoint()?;
        if all > LONG_WAL && moved < all {
            let _batcher = self.batcher();
            checkpoint()?;
        }
        Ok(())
    }

    fn batcher(&self) -> MutexGuard<'_, WriteBatcher> {
        // A transaction that a panic cuts short is rolled back as it is dropped.
        self.batcher.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
