//! Which ends somebody has been told of.
//!
//! An end is seen once an answer or a stream has carried it to a client. That is noted here, in
//! memory, by whoever hands it over, and written down some time later, many at once: what a crash
//! takes with it counts as unseen, and is kept the longer for it.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

use crate::task::{Seq, Task};

/// Of a thousand watchers that are told the same end, the first notes it. Each task has one slot,
/// which it shares with others: a task that finds its slot taken is noted once more, for nothing.
const SLOTS: usize = 4096;

/// How many notes may wait; one beyond is not taken, and its task counts as unseen.
const MOST_WAITING: usize = 1 << 16;

/// The notes that are not written down yet.
#[derive(Debug)]
pub(super) struct Seen {
    lately: Box<[AtomicU64]>,
    waiting: Mutex<Vec<Seq>>,
    arrived: Notify,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            lately: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            waiting: Mutex::default(),
            arrived: Notify::new(),
        }
    }

    /// Notes that a client is being told of a task's end; of a live one there is nothing to note.
    pub(super) fn note(&self, task: &Task) {
        let Seq(seq) = task.seq;
        let slot = &self.lately[(seq % SLOTS as u64) as usize];
        if task.is_live() || slot.load(Ordering::Relaxed) == seq {
            return;
        }
        slot.store(seq, Ordering::Relaxed);
        let mut waiting = self.waiting();
        if waiting.len() < MOST_WAITING {
            waiting.push(task.seq);
        }
        if waiting.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// Takes some notes, to be written down.
    pub(super) fn take(&self, most: usize) -> Vec<Seq> {
        let mut waiting = self.waiting();
        let rest = waiting.len().saturating_sub(most);
        waiting.split_off(rest)
    }

    /// Notes again what could not be written down.
    pub(super) fn put_back(&self, seqs: Vec<Seq>) {
        let mut waiting = self.waiting();
        waiting.extend(seqs);
        waiting.truncate(MOST_WAITING);
    }

    /// Waits until there is something to write down, which may have been so since the last time.
    pub(super) async fn arrived(&self) {
        self.arrived.notified().await;
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Seq>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
