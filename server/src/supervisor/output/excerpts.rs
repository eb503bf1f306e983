//! Excerpts of output for events and answers: the tail and the summary of an end, the lines of a match.
//! They are read from the task's output when they are delivered, kept in memory for a while, and never
//! written anywhere.
//!
//! The cache belongs to the supervisor because a removal has to empty it:
//!
//! ```text
//! reader:  task still in the journal? ──> lock slot ──> hit, or: not being removed? ──> read ──> keep
//! removal: mark as being removed ──> lock slots, clear them ──> journal ──> delete files ──> unmark
//! ```
//!
//! A reader that has the slot first is cleared after it; one that comes later sees the mark, or finds
//! no file. So from the moment a removal is announced, no reader gets an excerpt of the task.

use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prost::bytes::Bytes;
use tokio::task::spawn_blocking;

use super::source::{Extent, Source};
use crate::{
    output::{
        plain::line_text,
        summary::{self, Ends},
    },
    process::signal_name,
    supervisor::{Shared, Supervisor},
    task::{Item, LinePlace, Revision, Seq, Tail, Task},
};

/// The size of a tail, at most.
pub(crate) const TAIL_BYTES: usize = 4096;
/// The size of the text of a line, at most.
pub(crate) const LINE_BYTES: usize = 4096;
/// The size of each end of the output that a summary is made of.
const SUMMARY_END: u64 = 1 << 20;
/// About 1 MiB of tails: enough for hundreds of tasks that end together.
const SLOTS: usize = 256;
/// The size of an excerpt that is kept, at most: a tail fits with its description.
const LARGEST_KEPT: usize = 8 << 10;
/// Up to this many excerpts of little output are read in place: that takes less time than waking another
/// thread.
const READ_IN_PLACE: usize = 1;
const LITTLE: u64 = 64 << 10;

/// A part of a task's output that is told in words or lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Excerpt {
    /// The end of the output.
    Tail(Tail),
    /// The text of each line of the task's latest match; `None` where it is not there any more.
    Match(Vec<Option<String>>),
    /// The end of the task in words.
    Summary(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExcerptKind {
    Tail,
    Match,
    Summary,
}

/// Turns an excerpt into the bytes that are delivered and cached.
pub(crate) type EncodeExcerpt = fn(&Task, Excerpt) -> Bytes;

/// An excerpt of a task in the state of one revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    seq: Seq,
    revision: Revision,
    kind: ExcerptKind,
}

/// The latest excerpts. Each has one slot, and tasks that end together do not displace one another.
#[derive(Debug)]
pub(in crate::supervisor) struct ExcerptCache {
    slots: Vec<Mutex<Option<(Key, Bytes)>>>,
    /// The number of removals of each task that are under way.
    being_removed: Mutex<HashMap<Seq, usize>>,
}

/// Keeps the excerpts of some tasks out of the cache while the tasks are removed.
#[derive(Debug)]
pub(in crate::supervisor) struct Removal<'a> {
    cache: &'a ExcerptCache,
    seqs: Vec<Seq>,
}

impl Supervisor {
    /// Returns the encoded excerpts; none of a task that was removed, or whose output cannot be read.
    pub(crate) async fn excerpts(
        &self,
        wanted: Vec<(Arc<Task>, ExcerptKind)>,
        encode: EncodeExcerpt,
    ) -> Vec<Option<Bytes>> {
        let cache = &self.shared.excerpts;
        let cached = |(task, kind): &(Arc<Task>, ExcerptKind)| cache.get(Key::of(task, *kind));
        let mut excerpts: Vec<_> = wanted.iter().map(cached).collect();
        let mut missing = Vec::new();
        for (index, (task, kind)) in wanted.into_iter().enumerate() {
            if excerpts[index].is_none() && self.is_known(&task).await {
                missing.push((index, task, kind));
            }
        }
        for (index, excerpt) in self.read_excerpts(missing, encode).await {
            excerpts[index] = excerpt;
        }
        excerpts
    }

    /// A crash between the two steps of a removal leaves a file without a task.
    async fn is_known(&self, task: &Task) -> bool {
        let known = self.shared.parts.journal.task(&task.id).await;
        known.is_ok_and(|known| known.is_some())
    }

    async fn read_excerpts(
        &self,
        wanted: Vec<(usize, Arc<Task>, ExcerptKind)>,
        encode: EncodeExcerpt,
    ) -> Vec<(usize, Option<Bytes>)> {
        let is_quick = |(_, task, kind): &(usize, Arc<Task>, ExcerptKind)| match kind {
            ExcerptKind::Tail => true,
            ExcerptKind::Match | ExcerptKind::Summary => task.output_bytes <= LITTLE,
        };
        if wanted.len() <= READ_IN_PLACE && wanted.iter().all(is_quick) {
            return read_all(&self.shared, wanted, encode);
        }
        let shared = Arc::clone(&self.shared);
        let reading = spawn_blocking(move || read_all(&shared, wanted, encode));
        // It fails only if the runtime shuts down, and then the event is not sent either.
        reading.await.unwrap_or_default()
    }
}

impl Key {
    fn of(task: &Task, kind: ExcerptKind) -> Self {
        Self {
            seq: task.seq,
            revision: task.revision,
            kind,
        }
    }

    fn slot(self) -> usize {
        let number = match self.kind {
            ExcerptKind::Tail => self.seq.0,
            ExcerptKind::Summary => self.seq.0 + SLOTS as u64 / 2,
            ExcerptKind::Match => self.revision.0,
        };
        (number % SLOTS as u64) as usize
    }
}

impl ExcerptCache {
    pub(in crate::supervisor) fn new() -> Self {
        Self {
            slots: (0..SLOTS).map(|_| Mutex::default()).collect(),
            being_removed: Mutex::default(),
        }
    }

    /// Clears the excerpts of these tasks, and keeps them out until the returned value is dropped.
    pub(in crate::supervisor) fn begin_removal(&self, seqs: Vec<Seq>) -> Removal<'_> {
        {
            let mut being_removed = lock(&self.being_removed);
            for seq in &seqs {
                *being_removed.entry(*seq).or_default() += 1;
            }
        }
        let removed: HashSet<Seq> = seqs.iter().copied().collect();
        for slot in &self.slots {
            lock(slot).take_if(|(kept, _)| removed.contains(&kept.seq));
        }
        Removal { cache: self, seqs }
    }

    fn get(&self, key: Key) -> Option<Bytes> {
        let slot = lock(&self.slots[key.slot()]);
        let (_, excerpt) = slot.as_ref().filter(|(kept, _)| *kept == key)?;
        Some(excerpt.clone())
    }

    /// Reads with the slot locked: of many that want the same excerpt at once, one reads it.
    fn get_or_read(&self, key: Key, read: impl FnOnce() -> Option<Bytes>) -> Option<Bytes> {
        let mut slot = lock(&self.slots[key.slot()]);
        if let Some((kept, excerpt)) = &*slot
            && *kept == key
        {
            return Some(excerpt.clone());
        }
        if lock(&self.being_removed).contains_key(&key.seq) {
            return None;
        }
        let excerpt = read()?;
        if excerpt.len() <= LARGEST_KEPT {
            *slot = Some((key, excerpt.clone()));
        }
        Some(excerpt)
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
    wanted: Vec<(usize, Arc<Task>, ExcerptKind)>,
    encode: EncodeExcerpt,
) -> Vec<(usize, Option<Bytes>)> {
    let read = |(index, task, kind): (usize, Arc<Task>, ExcerptKind)| {
        let read = || match read_excerpt(shared, &task, kind) {
            Ok(excerpt) => excerpt.map(|excerpt| encode(&task, excerpt)),
            Err(error) => {
                tracing::warn!(task = %task.id, %error, "could not read the output");
                None
            }
        };
        let key = Key::of(&task, kind);
        (index, shared.excerpts.get_or_read(key, read))
    };
    wanted.into_iter().map(read).collect()
}

fn read_excerpt(shared: &Shared, task: &Task, kind: ExcerptKind) -> io::Result<Option<Excerpt>> {
    let file = shared.parts.task_dir.open_own(&task.id, task.uid)?;
    match (kind, file) {
        (ExcerptKind::Tail, None) => Ok(None),
        (ExcerptKind::Tail, Some(file)) => file.tail(TAIL_BYTES).map(Excerpt::Tail).map(Some),
        (ExcerptKind::Match, file) => {
            let source = Source::of(file, Extent::Growing);
            let lines = task.last_match.iter().flat_map(|matched| &matched.lines);
            let texts: io::Result<_> = lines.map(|line| line_at(&source, line)).collect();
            texts.map(Excerpt::Match).map(Some)
        }
        (ExcerptKind::Summary, file) => {
            let ends = ends(&Source::of(file, Extent::of(task)))?;
            let summary = summary::of(task, &ends, signal_name);
            Ok(Some(Excerpt::Summary(summary)))
        }
    }
}

/// The text of a line; `None` if not all of its output is there.
fn line_at(source: &Source, line: &LinePlace) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    for item in source.read_range(line.offset, line.end)? {
        match item {
            Item::Chunk(chunk) if chunk.stream == line.stream => bytes.extend(chunk.data),
            Item::Chunk(_) => {}
            Item::Gap(_) => return Ok(None),
        }
    }
    Ok((!bytes.is_empty()).then(|| line_text(&bytes, LINE_BYTES)))
}

fn ends(source: &Source) -> io::Result<Ends> {
    // Bytes that were dropped at the end have no lines.
    let end = source.stored_end()?;
    let head_end = end.min(SUMMARY_END);
    let tail_start = end.saturating_sub(SUMMARY_END).max(head_end);
    Ok(Ends {
        head: source.read_range(0, head_end)?,
        tail: source.read_range(tail_start, end)?,
        omitted: tail_start - head_end + (source.end()? - end),
    })
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

    fn tail(seq: u64) -> Key {
        Key {
            seq: Seq(seq),
            revision: Revision(9),
            kind: ExcerptKind::Tail,
        }
    }

    fn bytes(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    /// E5
    #[test]
    fn an_excerpt_is_read_once_and_never_given_to_another_task_of_the_same_slot() {
        let cache = ExcerptCache::new();
        let (one, other) = (tail(1), tail(1 + SLOTS as u64));
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
        let (cache, reads) = (ExcerptCache::new(), AtomicUsize::new(0));
        let read = || {
            reads.fetch_add(1, Ordering::Relaxed);
            bytes("tail")
        };
        thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| assert_eq!(cache.get_or_read(tail(7), read), bytes("tail")));
            }
        });
        assert_eq!(reads.into_inner(), 1);
    }

    /// L9
    #[test]
    fn a_removal_clears_excerpts_and_keeps_them_out_until_the_files_are_deleted() {
        let cache = ExcerptCache::new();
        let (removed, kept) = (tail(1), tail(2));
        let of_a_match = Key {
            kind: ExcerptKind::Match,
            ..removed
        };
        for key in [removed, of_a_match, kept] {
            cache.get_or_read(key, || bytes("tail"));
        }
        let removal = cache.begin_removal(vec![removed.seq]);
        drop(cache.begin_removal(vec![removed.seq]));
        assert_eq!(cache.get(of_a_match), None);
        assert_eq!(cache.get(removed), None);
        assert_eq!(cache.get_or_read(removed, || bytes("tail")), None);
        assert_eq!(cache.get(kept), bytes("tail"));
        drop(removal);
        assert_eq!(cache.get_or_read(removed, || None), None, "no file is left");
        assert!(lock(&cache.being_removed).is_empty());
    }
}
