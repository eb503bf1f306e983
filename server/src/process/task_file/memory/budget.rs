//! The memory budget: the bytes of each task's memory file.

use std::collections::HashMap;

use heeler_shim::memory_file::MEMORY_FILE_LIMIT;

use crate::task::TaskId;

#[derive(Debug, Default)]
pub(super) struct Budget {
    shares: HashMap<TaskId, Share>,
    total: u64,
}

/// The bytes that count for one task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// The largest memory file: it is being written.
    Reserved,
    /// The size of a file that does not grow any more.
    Settled(u64),
}

impl Budget {
    /// The number of bytes that are missing for this many more tasks.
    pub(super) fn shortage(&self, tasks: u64, limit: u64) -> u64 {
        let needed = MEMORY_FILE_LIMIT.saturating_mul(tasks);
        self.total.saturating_add(needed).saturating_sub(limit)
    }

    /// The bytes of a task that are settled.
    pub(super) fn settled(&self, id: &TaskId) -> u64 {
        match self.shares.get(id) {
            Some(Share::Settled(bytes)) => *bytes,
            Some(Share::Reserved) | None => 0,
        }
    }

    /// Returns whether any task's share is settled.
    pub(super) fn has_settled(&self) -> bool {
        let is_settled = |share: &Share| matches!(share, Share::Settled(_));
        self.shares.values().any(is_settled)
    }

    /// Sets a task's share; returns its bytes before.
    pub(super) fn set(&mut self, id: TaskId, share: Option<Share>) -> u64 {
        let before = match share {
            Some(share) => self.shares.insert(id, share),
            None => self.shares.remove(&id),
        };
        let before = before.map_or(0, Share::bytes);
        self.total = self.total + share.map_or(0, Share::bytes) - before;
        before
    }

    /// The tasks with a reservation.
    pub(super) fn reserved(&self) -> Vec<TaskId> {
        let reserved = |(id, share): (&TaskId, &Share)| match share {
            Share::Reserved => Some(id.clone()),
            Share::Settled(_) => None,
        };
        self.shares.iter().filter_map(reserved).collect()
    }
}

impl Share {
    fn bytes(self) -> u64 {
        match self {
            Self::Reserved => MEMORY_FILE_LIMIT,
            Self::Settled(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F12
    #[test]
    fn bytes_that_are_given_back_can_be_reserved_again() {
        let id = |last: char| {
            format!("shell-aaaaaaaaa{last}")
                .parse::<TaskId>()
                .expect("an id")
        };
        let limit = 2 * MEMORY_FILE_LIMIT;
        let mut budget = Budget::default();
        for last in ['a', 'b'] {
            assert_eq!(budget.shortage(1, limit), 0);
            budget.set(id(last), Some(Share::Reserved));
        }
        assert_eq!(budget.shortage(1, limit), MEMORY_FILE_LIMIT);
        let before = budget.set(id('a'), Some(Share::Settled(1)));
        assert_eq!(before, MEMORY_FILE_LIMIT);
        assert_eq!(budget.shortage(1, limit), 1);
        assert_eq!(budget.set(id('a'), None), 1);
        assert_eq!(budget.set(id('a'), None), 0);
        assert_eq!(budget.shortage(1, limit), 0);
        assert_eq!(budget.reserved(), [id('b')]);
    }
}
