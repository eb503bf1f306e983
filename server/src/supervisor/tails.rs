//! Output tails for ENDED events: read from the task's output when an event is delivered, kept in
//! memory for a while, and never written anywhere.
//!
//! The cache belongs to the supervisor because a removal has to empty it:
//!
//! ```text
//! reader:  task still in the journal? ──> lock slot ──> hit, or: not being removed? ──> read ──> keep
//! removal: mark as being removed ──> lock slot, clear it ──> journal ──> delete files ──> unmark
//! ```
//!
//! A reader that has the slot first is cleared after it; one that comes later sees the mark, or finds
//! no file. So from the moment a removal is announced, no reader gets a tail of the task.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prost::bytes::Bytes;
use tokio::task::spawn_blocking;

use super::{Shared, Supervisor};
use crate::{
    process::task_file::TaskDir,
    task::{Seq, Tail, Task},
};

/// The size of a tail, at most.
pub(crate) const TAIL_BYTES: usize = 4096;
/// About 1 MiB of tails: enough for hundreds of tasks that end together.
const SLOTS: usize = 256;
/// Up to this many tails are read in place: that takes less time than waking another thread.
const READ_IN_PLACE: usize = 1;

/// Turns a tail into the bytes that are delivered and cached.
pub(crate) type EncodeTail = fn(&Tail) -> Bytes;

/// The tails of tasks that ended lately. A task has one slot, which it shares with every
/// [`SLOTS`]th: tasks that end together do not displace one another.
#[derive(Debug)]
pub(super) struct TailCache {
    slots: Vec<Mutex<Option<(Seq, Bytes)>>>,
    /// The number of removals of each task that are under way.
    being_removed: Mutex<HashMap<Seq, usize>>,
}

/// Keeps the tails of some tasks out of the cache while the tasks are removed.
#[derive(Debug)]
pub(super) struct Removal<'a> {
    cache: &'a TailCache,
    seqs: Vec<Seq>,
}

impl Supervisor {
    /// Returns the encoded output tail of each finished task; none for a task that was removed, or
    /// whose output cannot be read.
    pub(crate) async fn tails(
        &self,
        tasks: Vec<Arc<Task>>,
        encode: EncodeTail,
    ) -> Vec<Option<Bytes>> {
        let cache = &self.shared.tails;
        let mut tails: Vec<_> = tasks.iter().map(|task| cache.get(task.seq)).collect();
        let mut missing = Vec::new();
        for (index, task) in tasks.into_iter().enumerate() {
            if tails[index].is_none() && self.is_known(&task).await {
                missing.push((index, task));
            }
        }
        for (index, tail) in self.read_tails(missing, encode).await {
            tails[index] = tail;
        }
        tails
    }

    /// A crash between the two steps of a removal leaves a file without a task.
    async fn is_known(&self, task: &Task) -> bool {
        let known = self.shared.parts.journal.task(&task.id).await;
        known.is_ok_and(|known| known.is_some())
    }

    async fn read_tails(
        &self,
        tasks: Vec<(usize, Arc<Task>)>,
        encode: EncodeTail,
    ) -> Vec<(usize, Option<Bytes>)> {
        if tasks.len() <= READ_IN_PLACE {
            return read_all(&self.shared, tasks, encode);
        }
        let shared = Arc::clone(&self.shared);
        let reading = spawn_blocking(move || read_all(&shared, tasks, encode));
        // It fails only if the runtime shuts down, and then the event is not sent either.
        reading.await.unwrap_or_default()
    }
}

impl TailCache {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            being_removed: Mutex::default(),
        }
    }

    /// Clears the tails of these tasks, and keeps them out until the returned value is dropped.
    pub(super) fn begin_removal(&self, seqs: Vec<Seq>) -> Removal<'_> {
        {
            let mut being_removed = lock(&self.being_removed);
            for seq in &seqs {
                *being_removed.entry(*seq).or_default() += 1;
            }
        }
        for seq in &seqs {
            lock(self.slot(*seq)).take_if(|(kept, _)| kept == seq);
        }
        Removal { cache: self, seqs }
    }

    fn get(&self, seq: Seq) -> Option<Bytes> {
        let slot = lock(self.slot(seq));
        let (_, tail) = slot.as_ref().filter(|(kept, _)| *kept == seq)?;
        Some(tail.clone())
    }

    /// Reads with the slot locked: of many that want the same tail at once, one reads it.
    fn get_or_read(&self, seq: Seq, read: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        let mut slot = lock(self.slot(seq));
        if let Some((kept, tail)) = &*slot
            && *kept == seq
        {
            return Some(tail.clone());
        }
        if lock(&self.being_removed).contains_key(&seq) {
            return None;
        }
        let tail = read()?;
        *slot = Some((seq, tail.clone()));
        Some(tail)
    }

    fn slot(&self, seq: Seq) -> &Mutex<Option<(Seq, Bytes)>> {
        &self.slots[(seq.0 % SLOTS as u64) as usize]
    }
}

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        let mut being_removed = lock(&self.cache.being_removed);
        for seq in &self.seqs {
            if let Entry::Occupied(mut removals) = being_removed.entry(*seq) {
                *removals.get_mut() -= 1;
                if *removals.get() == 0 {
                    removals.remove();
                }
            }
        }
    }
}

fn read_all(
    shared: &Shared,
    tasks: Vec<(usize, Arc<Task>)>,
    encode: EncodeTail,
) -> Vec<(usize, Option<Bytes>)> {
    let read = |(index, task): (usize, Arc<Task>)| {
        let read = || read_encoded(&shared.parts.task_dir, &task, encode);
        (index, shared.tails.get_or_read(task.seq, read))
    };
    tasks.into_iter().map(read).collect()
}

fn read_encoded(task_dir: &TaskDir, task: &Task, encode: EncodeTail) -> Option<Bytes> {
    let file = task_dir.open_own(&task.id, task.uid);
    let tail = file.and_then(|file| file.map(|file| file.tail(TAIL_BYTES)).transpose());
    let tail = tail.unwrap_or_else(|error| {
        tracing::warn!(task = %task.id, %error, "could not read the output tail");
        None
    });
    tail.as_ref().map(encode)
}

/// A panic cannot leave a slot or the set half-changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    fn bytes(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    /// E5
    #[test]
    fn a_tail_is_read_once_and_never_given_to_another_task_of_the_same_slot() {
        let cache = TailCache::new();
        let (one, other) = (Seq(1), Seq(1 + SLOTS as u64));
        assert_eq!(cache.get_or_read(one, || bytes("one")), bytes("one"));
        let read = cache.get_or_read(one, || panic!("it is cached"));
        assert_eq!(read, bytes("one"));
        assert_eq!(cache.get(other), None);
        assert_eq!(cache.get_or_read(other, || bytes("other")), bytes("other"));
        assert_eq!(cache.get(one), None);
    }

    /// E5
    #[test]
    fn many_readers_at_once_cost_one_read() {
        let (cache, reads) = (TailCache::new(), AtomicUsize::new(0));
        let read = || {
            reads.fetch_add(1, Ordering::Relaxed);
            bytes("tail")
        };
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(cache.get_or_read(Seq(7), read), bytes("tail")));
            }
        });
        assert_eq!(reads.into_inner(), 1);
    }

    /// L9
    #[test]
    fn a_removal_clears_the_tail_and_keeps_it_out_until_the_files_are_deleted() {
        let cache = TailCache::new();
        let (removed, kept) = (Seq(1), Seq(2));
        for seq in [removed, kept] {
            cache.get_or_read(seq, || bytes("tail"));
        }
        let removal = cache.begin_removal(vec![removed]);
        drop(cache.begin_removal(vec![removed]));
        assert_eq!(cache.get(removed), None);
        assert_eq!(cache.get_or_read(removed, || bytes("tail")), None);
        assert_eq!(cache.get(kept), bytes("tail"));
        drop(removal);
        assert_eq!(cache.get_or_read(removed, || None), None, "no file is left");
        assert!(lock(&cache.being_removed).is_empty());
    }
}
