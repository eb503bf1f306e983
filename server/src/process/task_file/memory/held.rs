//! Who has how much memory.

use std::collections::HashMap;

use heeler_shim::memory::MEMORY_FILE_LIMIT;

use crate::task::TaskId;

/// How much memory each task has.
#[derive(Debug, Default)]
pub(super) struct Held {
    tasks: HashMap<TaskId, Share>,
    total: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Share {
    /// As much as it may come to have: it is being written.
    Reserved,
    /// So much, and it will not grow.
    Settled(u64),
}

impl Held {
    /// Whether one more task may have all that it may come to need, within a limit.
    pub(super) fn has_room(&self, limit: u64) -> bool {
        self.total + MEMORY_FILE_LIMIT <= limit
    }

    /// What a task has from now on.
    pub(super) fn set(&mut self, id: TaskId, share: Option<Share>) {
        let before = match share {
            Some(share) => self.tasks.insert(id, share),
            None => self.tasks.remove(&id),
        };
        self.total = self.total + share.map_or(0, Share::bytes) - before.map_or(0, Share::bytes);
    }

    /// Those for whom more is kept than they may have.
    pub(super) fn reserved(&self) -> Vec<TaskId> {
        let reserved = |(id, share): (&TaskId, &Share)| match share {
            Share::Reserved => Some(id.clone()),
            Share::Settled(_) => None,
        };
        self.tasks.iter().filter_map(reserved).collect()
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

    #[test]
    fn what_is_given_back_can_be_had_again() {
        let id = |last: char| {
            format!("shell-aaaaaaaaa{last}")
                .parse::<TaskId>()
                .expect("an id")
        };
        let limit = 2 * MEMORY_FILE_LIMIT;
        let mut held = Held::default();
        for last in ['a', 'b'] {
            assert!(held.has_room(limit));
            held.set(id(last), Some(Share::Reserved));
        }
        assert!(!held.has_room(limit));
        held.set(id('a'), Some(Share::Settled(1)));
        assert!(!held.has_room(limit));
        held.set(id('a'), None);
        held.set(id('a'), None);
        assert!(held.has_room(limit));
        assert_eq!(held.reserved(), [id('b')]);
    }
}
