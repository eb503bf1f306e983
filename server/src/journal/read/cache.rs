//! A bounded cache of events read from the file. A miss reads the file again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::SizedFact;
use crate::task::{Fact, Revision};

/// Enough for watchers that fell behind together, and for a page that many clients list.
const SLOTS: usize = 512;
/// As encoded. A usual record fits several times over; a very large one is read each time.
const LARGEST: usize = 6 << 10;

/// The facts. Each has one slot, which it shares with every [`SLOTS`]th: neighbours never displace one
/// another.
#[derive(Debug)]
pub(super) struct ReadCache {
    slots: Mutex<Vec<Option<SizedFact>>>,
}

impl Default for ReadCache {
    fn default() -> Self {
        Self {
            slots: Mutex::new(vec![None; SLOTS]),
        }
    }
}

impl ReadCache {
    /// Keeps a fact, in the place of the one in its slot.
    pub(super) fn put(&self, sized: &SizedFact) {
        if sized.bytes <= LARGEST {
            self.slots()[slot(sized.revision())] = Some(sized.clone());
        }
    }

    pub(super) fn at(&self, revision: Revision) -> Option<SizedFact> {
        let slots = self.slots();
        slots[slot(revision)]
            .as_ref()
            .filter(|kept| kept.revision() == revision)
            .cloned()
    }

    /// The facts after a revision, up to the first that is not here.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Vec<Fact> {
        let slots = self.slots();
        (after.0 + 1..)
            .take(limit)
            .map_while(|revision| {
                let kept = slots[slot(Revision(revision))].as_ref()?;
                (kept.revision().0 == revision).then(|| kept.fact.clone())
            })
            .collect()
    }

    fn slots(&self) -> MutexGuard<'_, Vec<Option<SizedFact>>> {
        // A slot is replaced whole: a panic cannot leave it half-changed.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(revision: Revision) -> usize {
    (revision.0 % SLOTS as u64) as usize
}
