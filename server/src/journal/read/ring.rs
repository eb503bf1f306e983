//! A bounded buffer of the newest events. Older events are read from the file.

use std::collections::VecDeque;

use super::SizedFact;
use crate::task::{Fact, Revision};

/// A quarter of a second of the busiest traffic: a watcher that keeps up never touches the disk.
const FACTS: usize = 2048;
/// As encoded; decoded it is about twice as much. A busy daemon is to stay below 30 MB.
const BYTES: usize = 2 << 20;

/// The newest facts, without a gap.
#[derive(Debug, Default)]
pub(super) struct Ring {
    facts: VecDeque<SizedFact>,
    bytes: usize,
}

impl Ring {
    /// Adds the fact that follows the newest.
    pub(super) fn push(&mut self, newest: SizedFact) {
        self.bytes += newest.bytes;
        self.facts.push_back(newest);
        while self.facts.len() > FACTS || self.bytes > BYTES {
            let Some(oldest) = self.facts.pop_front() else {
                break;
            };
            self.bytes -= oldest.bytes;
        }
    }

    /// Up to `limit` facts after a revision; none if the first of them is no longer here.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Option<Vec<Fact>> {
        let first = self.facts.front()?.revision().0;
        let skipped = usize::try_from((after.0 + 1).checked_sub(first)?).ok()?;
        let facts = self.facts.iter().skip(skipped).take(limit);
        Some(facts.map(|sized| sized.fact.clone()).collect())
    }

    pub(super) fn at(&self, revision: Revision) -> Option<SizedFact> {
        let first = self.facts.front()?.revision().0;
        let index = usize::try_from(revision.0.checked_sub(first)?).ok()?;
        self.facts.get(index).cloned()
    }
}
