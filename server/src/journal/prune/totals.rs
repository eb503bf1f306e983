//! Counters of what the journal keeps: the oldest event that is delivered, how many tasks are finished,
//! and how much output they have.
//!
//! Changed by the writer alone, after a commit. The finished tasks are counted once, after start-up
//! ([`super::Journal::count_finished`]); from then on the counters follow the commits.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::{
    journal::meters::Meters,
    task::{EventRole, Fact, Revision},
};

/// The counters.
#[derive(Debug)]
pub(in crate::journal) struct Totals {
    oldest: AtomicU64,
    finished: AtomicI64,
    stored_bytes: AtomicI64,
    pub(in crate::journal) meters: Meters,
}

/// Totals over the finished tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FinishedTotals {
    pub(crate) tasks: u64,
    pub(crate) stored_bytes: u64,
}

impl Totals {
    /// With no finished task counted yet.
    pub(in crate::journal) fn new(oldest: Revision) -> Self {
        Self {
            oldest: AtomicU64::new(oldest.0),
            finished: AtomicI64::new(0),
            stored_bytes: AtomicI64::new(0),
            meters: Meters::new(),
        }
    }

    pub(in crate::journal) fn oldest(&self) -> Revision {
        Revision(self.oldest.load(Ordering::Acquire))
    }

    pub(in crate::journal) fn raise_oldest(&self, oldest: Revision) {
        self.oldest.store(oldest.0, Ordering::Release);
    }

    pub(super) fn finished(&self) -> FinishedTotals {
        let count = |number: &AtomicI64| u64::try_from(number.load(Ordering::Relaxed)).unwrap_or(0);
        FinishedTotals {
            tasks: count(&self.finished),
            stored_bytes: count(&self.stored_bytes),
        }
    }

    /// Counts a fact that was committed.
    pub(in crate::journal) fn count(&self, fact: &Fact) {
        let Some(event) = fact.event() else { return };
        let bytes = signed(event.task.stored_bytes);
        match (event.kind.role(), event.task.is_live()) {
            (EventRole::Creation | EventRole::Change, false) => self.add(1, bytes),
            (EventRole::Removal, _) => self.add(-1, -bytes),
            (EventRole::Creation | EventRole::Change, true) => {}
        }
    }

    /// Starts from zero; to be called while nothing is being committed.
    pub(super) fn begin_count(&self) {
        self.finished.store(0, Ordering::Relaxed);
        self.stored_bytes.store(0, Ordering::Relaxed);
    }

    /// Adds the tasks that were finished when the count began.
    pub(super) fn add_counted(&self, counted: FinishedTotals) {
        self.add(signed(counted.tasks), signed(counted.stored_bytes));
    }

    fn add(&self, tasks: i64, bytes: i64) {
        self.finished.fetch_add(tasks, Ordering::Relaxed);
        self.stored_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
