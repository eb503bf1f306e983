//! Decoded facts in memory: the newest, and those old ones that somebody has just read.
//!
//! Both are bounded, and nothing depends on what they hold: whoever misses reads the disk.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::task::{Event, Fact, Revision};

/// A quarter of a second of the busiest traffic: a watcher that keeps up never touches the disk.
const RING_EVENTS: usize = 2048;
/// As encoded; decoded it is about twice as much. A daemon at work is to stay below 30 MB.
const RING_BYTES: usize = 2 << 20;

/// Enough for the watchers that fell behind together, and for the page that everybody lists.
const SHELF_EVENTS: usize = 512;
/// As encoded. A record of the usual size with a full tail fits; a giant is read anew each time.
const SHELF_EVENT_BYTES: usize = 6 << 10;

/// A fact with the size that it has when encoded.
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    pub(super) fact: Fact,
    pub(super) bytes: usize,
}

/// What happened to a task, weighed.
#[derive(Debug, Clone)]
pub(super) struct TaskRecord {
    pub(super) event: Arc<Event>,
    pub(super) bytes: usize,
}

impl From<TaskRecord> for Weighed {
    fn from(TaskRecord { event, bytes }: TaskRecord) -> Self {
        Self {
            fact: Fact::Task(event),
            bytes,
        }
    }
}

impl Weighed {
    pub(super) fn revision(&self) -> Revision {
        self.fact.revision()
    }

    /// None if it is of no task.
    pub(super) fn task_record(&self) -> Option<TaskRecord> {
        let event = Arc::clone(self.fact.event()?);
        Some(TaskRecord {
            event,
            bytes: self.bytes,
        })
    }
}

/// The newest facts, without a gap.
#[derive(Debug, Default)]
pub(super) struct Ring {
    facts: VecDeque<Weighed>,
    bytes: usize,
}

impl Ring {
    /// Takes the fact that follows the newest.
    pub(super) fn push(&mut self, newest: Weighed) {
        self.bytes += newest.bytes;
        self.facts.push_back(newest);
        while self.facts.len() > RING_EVENTS || self.bytes > RING_BYTES {
            let Some(oldest) = self.facts.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
        }
    }

    /// Up to `limit` facts after a revision, if the first of them is still here.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Option<Vec<Fact>> {
        let first = self.facts.front()?.revision().0;
        let skipped = usize::try_from((after.0 + 1).checked_sub(first)?).ok()?;
        let facts = self.facts.iter().skip(skipped).take(limit);
        Some(facts.map(|weighed| weighed.fact.clone()).collect())
    }

    /// The fact at a revision.
    pub(super) fn at(&self, revision: Revision) -> Option<Weighed> {
        let first = self.facts.front()?.revision().0;
        let index = usize::try_from(revision.0.checked_sub(first)?).ok()?;
        self.facts.get(index).cloned()
    }
}

/// Old facts that were read lately. Each has one slot that it can be in, which it shares with
/// every [`SHELF_EVENTS`]th: neighbours never displace one another, and nothing is to be managed.
#[derive(Debug)]
pub(super) struct Shelf {
    slots: Mutex<Vec<Option<Weighed>>>,
}

impl Default for Shelf {
    fn default() -> Self {
        Self {
            slots: Mutex::new(vec![None; SHELF_EVENTS]),
        }
    }
}

impl Shelf {
    /// Keeps a fact in the place of another.
    pub(super) fn put(&self, weighed: &Weighed) {
        if weighed.bytes <= SHELF_EVENT_BYTES {
            self.slots()[slot(weighed.revision())] = Some(weighed.clone());
        }
    }

    /// The fact at a revision.
    pub(super) fn at(&self, revision: Revision) -> Option<Weighed> {
        let slots = self.slots();
        slots[slot(revision)]
            .as_ref()
            .filter(|held| held.revision() == revision)
            .cloned()
    }

    /// The facts that follow a revision, as far as they are here without a gap.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Vec<Fact> {
        let slots = self.slots();
        (after.0 + 1..)
            .take(limit)
            .map_while(|revision| {
                let held = slots[slot(Revision(revision))].as_ref()?;
                (held.revision().0 == revision).then(|| held.fact.clone())
            })
            .collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Option<Weighed>>> {
        // A slot is replaced whole: it is sound whatever became of who held the lock.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(revision: Revision) -> usize {
    (revision.0 % SHELF_EVENTS as u64) as usize
}
