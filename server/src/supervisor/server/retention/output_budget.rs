//! The disk space for the output of all tasks.
//!
//! ```text
//!  shim ── Stored ──> actor ──> OutputBudget ── near the limit ──> pruner: removes finished tasks, then
//!   ^                                                              lowers the limits of live ones
//!   └──────────────────────── LimitOutput ──────────────────────────────┘
//! ```
//!
//! Finished tasks are counted by the journal, live ones here: by the reports of their shims, and by the size
//! of their files after a restart. Work begins before the limit is reached, since a report comes only after
//! some growth.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::{
    process::shim::STORED_STEP,
    task::{OutputPolicy, TaskId},
};

/// The parts of the limit that are kept free: room is made once less than the first one is, until the
/// second one is.
const LOW_PART: u64 = 16;
const FREE_PART: u64 = 8;

/// The limit on the output of all tasks, and the use of it by live ones.
#[derive(Debug)]
pub(in crate::supervisor) struct OutputBudget {
    max_bytes: u64,
    live: Mutex<HashMap<TaskId, u64>>,
    total: watch::Sender<u64>,
}

impl OutputBudget {
    pub(in crate::supervisor) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            live: Mutex::default(),
            total: watch::Sender::new(0),
        }
    }

    /// The most that one task may store, whatever its own limit is. A shim keeps to it without a server.
    pub(in crate::supervisor) fn most_of_one_task(&self) -> u64 {
        self.target()
    }

    /// Notes the size of a live task's output.
    pub(in crate::supervisor) fn set(&self, id: &TaskId, bytes: u64) {
        let mut live = self.live();
        let before = live.insert(id.clone(), bytes).unwrap_or(0);
        self.total
            .send_modify(|total| *total = (*total - before).saturating_add(bytes));
    }

    /// Forgets a task that is no longer live.
    pub(in crate::supervisor) fn forget(&self, id: &TaskId) {
        let mut live = self.live();
        if let Some(before) = live.remove(id) {
            self.total.send_modify(|total| *total -= before);
        }
    }

    /// The output of live tasks, and the limit of all output.
    pub(in crate::supervisor) fn use_and_limit(&self) -> (u64, u64) {
        (*self.total.borrow(), self.max_bytes)
    }

    /// The bytes to give back; zero while enough is free. `finished` is the output of finished tasks.
    pub(super) fn excess(&self, finished: u64) -> u64 {
        self.excess_of(*self.total.borrow(), finished)
    }

    /// Waits until live tasks have grown, and there is something to give back.
    pub(super) async fn exceeded(&self, finished: u64) {
        let mut total = self.total.subscribe();
        let before = *total.borrow_and_update();
        let has_grown = |total: &u64| *total >= before.saturating_add(STORED_STEP);
        // The sender is in `self`, so the channel cannot close.
        let _ = total
            .wait_for(|total| has_grown(total) && self.excess_of(*total, finished) > 0)
            .await;
    }

    /// The tasks whose output must be smaller, and the size for all of them.
    pub(super) fn too_large(&self, finished: u64) -> Option<(Vec<TaskId>, u64)> {
        let live = self.live();
        let room = self.target().saturating_sub(finished);
        let size = level(live.values().copied().collect(), room)?.max(OutputPolicy::MIN_MAX_BYTES);
        let larger = live.iter().filter(|(_, bytes)| **bytes > size);
        let tasks: Vec<TaskId> = larger.map(|(id, _)| id.clone()).collect();
        (!tasks.is_empty()).then_some((tasks, size))
    }

    fn excess_of(&self, live: u64, finished: u64) -> u64 {
        let used = finished.saturating_add(live);
        match used > self.max_bytes - self.max_bytes / LOW_PART {
            true => used.saturating_sub(self.target()),
            false => 0,
        }
    }

    fn target(&self) -> u64 {
        self.max_bytes - self.max_bytes / FREE_PART
    }

    fn live(&self) -> MutexGuard<'_, HashMap<TaskId, u64>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest size to which all larger ones must be cut for the sum to be at most `room`; `None` if it is.
fn level(mut sizes: Vec<u64>, mut room: u64) -> Option<u64> {
    sizes.sort_unstable();
    let mut left = sizes.len() as u64;
    for size in sizes {
        let share = room / left;
        if size > share {
            return Some(share);
        }
        room -= size;
        left -= 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::task::{IdKey, Kind, Seq};

    fn id(seq: u64) -> TaskId {
        IdKey(1).task_id(Kind::Shell, Seq(seq))
    }

    proptest! {
        /// O18
        #[test]
        fn sizes_cut_to_the_level_fit(
            sizes in prop::collection::vec(0u64..10_000_000, 0..40),
            room in 0u64..100_000_000,
        ) {
            let sum: u64 = sizes.iter().sum();
            match level(sizes.clone(), room) {
                None => prop_assert!(sum <= room),
                Some(level) => {
                    prop_assert!(sum > room);
                    let cut: u64 = sizes.iter().map(|size| (*size).min(level)).sum();
                    prop_assert!(cut <= room);
                    prop_assert!(cut + sizes.len() as u64 > room, "nothing is cut in vain");
                }
            }
        }
    }

    /// O18
    #[test]
    fn the_largest_live_tasks_give_way_once_the_budget_is_nearly_used() {
        let budget = OutputBudget::new(160 << 20);
        budget.set(&id(1), 100 << 20);
        budget.set(&id(2), 10 << 20);
        assert_eq!(budget.excess(0), 0);
        assert_eq!(budget.excess(39 << 20), 0);
        assert_eq!(budget.excess(41 << 20), 11 << 20);
        budget.set(&id(2), 60 << 20);
        assert_eq!(budget.excess(0), 20 << 20);
        assert_eq!(budget.too_large(0), Some((vec![id(1)], 80 << 20)));
        budget.set(&id(1), 80 << 20);
        assert_eq!(budget.too_large(0), None);
        budget.forget(&id(2));
        assert_eq!(budget.excess(0), 0);
    }

    /// O18
    #[test]
    fn no_task_is_told_to_keep_less_than_the_smallest_limit() {
        let budget = OutputBudget::new(1 << 20);
        for seq in 0..20 {
            budget.set(&id(seq), 300 << 10);
        }
        let (tasks, size) = budget.too_large(0).expect("too much");
        assert_eq!((tasks.len(), size), (20, OutputPolicy::MIN_MAX_BYTES));
    }
}
