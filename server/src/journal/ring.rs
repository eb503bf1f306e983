//! Decoded events in memory: the newest, and those old ones that somebody has just read.
//!
//! Both are bounded, and nothing depends on what they hold: whoever misses reads the disk.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::task::{Event, Revision};

/// A quarter of a second of the busiest traffic: a watcher that keeps up never touches the disk.
const RING_EVENTS: usize = 2048;
/// As encoded; decoded it is about twice as much. A daemon at work is to stay below 30 MB.
const RING_BYTES: usize = 2 << 20;

/// Enough for the watchers that fell behind together, and for the page that everybody lists.
const SHELF_EVENTS: usize = 512;
/// As encoded. A record of the usual size with a full tail fits; a giant is read anew each time.
const SHELF_EVENT_BYTES: usize = 6 << 10;

/// An event with the size that it has when encoded.
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    pub(super) event: Arc<Event>,
    pub(super) bytes: usize,
}

/// The newest events, without a gap.
#[derive(Debug, Default)]
pub(super) struct Ring {
    events: VecDeque<Weighed>,
    bytes: usize,
}

impl Ring {
    /// Takes the event that follows the newest.
    pub(super) fn push(&mut self, newest: Weighed) {
        self.bytes += newest.bytes;
        self.events.push_back(newest);
        while self.events.len() > RING_EVENTS || self.bytes > RING_BYTES {
            let Some(oldest) = self.events.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
        }
    }

    /// Up to `limit` events after a revision, if the first of them is still here.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Option<Vec<Arc<Event>>> {
        let first = self.events.front()?.event.revision.0;
        let skipped = usize::try_from((after.0 + 1).checked_sub(first)?).ok()?;
        let events = self.events.iter().skip(skipped).take(limit);
        Some(events.map(|weighed| Arc::clone(&weighed.event)).collect())
    }

    /// The event at a revision.
    pub(super) fn at(&self, revision: Revision) -> Option<Weighed> {
        let first = self.events.front()?.event.revision.0;
        let index = usize::try_from(revision.0.checked_sub(first)?).ok()?;
        self.events.get(index).cloned()
    }
}

/// Old events that were read lately. Each has one slot that it can be in, which it shares with
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
    /// Keeps an event in the place of another.
    pub(super) fn put(&self, weighed: &Weighed) {
        if weighed.bytes <= SHELF_EVENT_BYTES {
            self.slots()[slot(weighed.event.revision)] = Some(weighed.clone());
        }
    }

    /// The event at a revision.
    pub(super) fn at(&self, revision: Revision) -> Option<Weighed> {
        let slots = self.slots();
        slots[slot(revision)]
            .as_ref()
            .filter(|held| held.event.revision == revision)
            .cloned()
    }

    /// The events that follow a revision, as far as they are here without a gap.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Vec<Arc<Event>> {
        let slots = self.slots();
        (after.0 + 1..)
            .take(limit)
            .map_while(|revision| {
                let held = slots[slot(Revision(revision))].as_ref()?;
                (held.event.revision.0 == revision).then(|| Arc::clone(&held.event))
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
