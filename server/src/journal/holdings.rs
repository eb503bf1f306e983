//! How much the journal holds, in numbers that anybody may read: which events can still be told, how
//! many tasks are finished, how much output they have.
//!
//! Changed by the writer alone, after a commit. The tasks are counted once, after start-up, by whoever
//! wants to know ([`super::Journal::census`]); from then on the numbers follow what is committed.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::task::{EventKind, Fact, Revision};

/// The numbers.
#[derive(Debug)]
pub(super) struct Holdings {
    oldest: AtomicU64,
    finished: AtomicI64,
    output_bytes: AtomicI64,
}

/// What the finished tasks amount to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Finished {
    /// How many there are.
    pub tasks: u64,
    /// What they have written.
    pub output_bytes: u64,
}

impl Holdings {
    /// With nothing counted yet.
    pub(super) fn new(oldest: Revision) -> Self {
        Self {
            oldest: AtomicU64::new(oldest.0),
            finished: AtomicI64::new(0),
            output_bytes: AtomicI64::new(0),
        }
    }

    pub(super) fn oldest(&self) -> Revision {
        Revision(self.oldest.load(Ordering::Acquire))
    }

    pub(super) fn raise_oldest(&self, oldest: Revision) {
        self.oldest.store(oldest.0, Ordering::Release);
    }

    pub(super) fn finished(&self) -> Finished {
        let count = |number: &AtomicI64| u64::try_from(number.load(Ordering::Relaxed)).unwrap_or(0);
        Finished {
            tasks: count(&self.finished),
            output_bytes: count(&self.output_bytes),
        }
    }

    /// What has become durable.
    pub(super) fn follow(&self, fact: &Fact) {
        let Some(event) = fact.event() else { return };
        let (tasks, bytes) = (1, signed(event.task.output_bytes));
        match event.kind {
            EventKind::Ended => self.add(tasks, bytes),
            EventKind::Removed => self.add(-tasks, -bytes),
            // A task may be over from the start.
            EventKind::Created if !event.task.is_live() => self.add(tasks, bytes),
            EventKind::Created
            | EventKind::Admitted
            | EventKind::Started
            | EventKind::Stopping
            | EventKind::LeaderExited
            | EventKind::Detached
            | EventKind::Stale
            | EventKind::Active
            | EventKind::KillOverdue => {}
        }
    }

    /// Forgets what was followed; to be called while nothing is being committed.
    pub(super) fn begin_count(&self) {
        self.finished.store(0, Ordering::Relaxed);
        self.output_bytes.store(0, Ordering::Relaxed);
    }

    /// Adds what there was when the count began.
    pub(super) fn counted(&self, there_was: Finished) {
        self.add(signed(there_was.tasks), signed(there_was.output_bytes));
    }

    fn add(&self, tasks: i64, bytes: i64) {
        self.finished.fetch_add(tasks, Ordering::Relaxed);
        self.output_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
