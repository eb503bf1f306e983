//! Ends that a client has received.
//!
//! An end counts as delivered once an answer or a stream has carried it to a client. The service notes
//! that here, in memory; it is written later, many ends at once. A crash loses the latest notes: those
//! tasks count as undelivered, and are kept longer.

use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

use crate::{
    journal::{JournalError, record::int, sql, write::Batch},
    task::{Seq, Task},
};

/// Of a thousand watchers that receive the same end, the first notes it. Each task has one slot, which
/// it shares with others; a task whose slot was taken is noted twice, which does no harm.
const SLOTS: usize = 4096;

/// Notes that may wait to be written. One beyond is dropped, and its task counts as undelivered.
const MAX_NOTES: usize = 1 << 16;

/// The notes that are not written yet.
#[derive(Debug)]
pub(in crate::journal) struct Delivered {
    recent: Box<[AtomicU64]>,
    notes: Mutex<Vec<Seq>>,
    noted: Notify,
}

impl Delivered {
    pub(in crate::journal) fn new() -> Self {
        Self {
            recent: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            notes: Mutex::default(),
            noted: Notify::new(),
        }
    }

    /// Notes that a task's end was delivered; does nothing for a live task.
    pub(super) fn note(&self, task: &Task) {
        let Seq(seq) = task.seq;
        let slot = &self.recent[(seq % SLOTS as u64) as usize];
        if task.is_live() || slot.load(Ordering::Relaxed) == seq {
            return;
        }
        slot.store(seq, Ordering::Relaxed);
        let mut notes = self.notes();
        if notes.len() < MAX_NOTES {
            notes.push(task.seq);
        }
        if notes.len() == 1 {
            self.noted.notify_one();
        }
    }

    /// Takes up to `limit` notes, to be written.
    pub(super) fn take(&self, limit: usize) -> Vec<Seq> {
        let mut notes = self.notes();
        let rest = notes.len().saturating_sub(limit);
        notes.split_off(rest)
    }

    /// Puts back notes that could not be written.
    pub(super) fn put_back(&self, seqs: Vec<Seq>) {
        let mut notes = self.notes();
        notes.extend(seqs);
        notes.truncate(MAX_NOTES);
    }

    /// Waits until there is a note, or returns at once if one came since the last wait.
    pub(super) async fn noted(&self) {
        self.noted.notified().await;
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Seq>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes which ends were delivered.
pub(in crate::journal) fn mark_delivered(
    batch: &mut Batch<'_>,
    seqs: &[Seq],
) -> Result<(), JournalError> {
    let mark = |seq: &Seq| {
        let mut mark = batch.connection.prepare_cached(sql::MARK_DELIVERED)?;
        mark.execute([int(seq.0)]).map(drop)
    };
    seqs.iter()
        .try_for_each(mark)
        .map_err(JournalError::storage("marking ends as delivered"))?;
    batch.upkeep += 1;
    Ok(())
}
