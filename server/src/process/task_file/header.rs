//! The records of a task file, each by itself: one that is damaged costs no other.

use heeler_shim::{
    log::BLOCKS_START,
    record::{Identity, LeaderExit, SLOT, SlotBytes, Start, TreeEnd, position},
};

/// The page that the records are in.
pub(super) type HeaderPage = [u8; BLOCKS_START as usize];

/// What is in the place of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slot<T> {
    /// Nothing was ever written there.
    #[default]
    Empty,
    /// Something that is no record of a kind this build knows: damaged, or cut short.
    Unreadable,
    /// The record.
    Whole(T),
}

/// Everything that a shim has recorded so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Records {
    /// Who made the file.
    pub identity: Slot<Identity>,
    /// How the start went.
    pub start: Slot<Start>,
    /// How the leader ended.
    pub leader_exit: Slot<LeaderExit>,
    /// That the tree is empty.
    pub tree_end: Slot<TreeEnd>,
}

impl<T: Copy> Slot<T> {
    /// The record, if it can be read.
    pub fn whole(&self) -> Option<T> {
        match self {
            Self::Whole(record) => Some(*record),
            Self::Empty | Self::Unreadable => None,
        }
    }

    fn read(page: &HeaderPage, at: u64, decode: fn(&SlotBytes) -> Option<T>) -> Self {
        let at = at as usize;
        let mut bytes = [0; SLOT];
        bytes.copy_from_slice(&page[at..at + SLOT]);
        match decode(&bytes) {
            Some(record) => Self::Whole(record),
            None if bytes.iter().all(|byte| *byte == 0) => Self::Empty,
            None => Self::Unreadable,
        }
    }
}

impl Records {
    pub(super) fn read(page: &HeaderPage) -> Self {
        Self {
            identity: Slot::read(page, position::IDENTITY, Identity::decode),
            start: Slot::read(page, position::START, Start::decode),
            leader_exit: Slot::read(page, position::LEADER_EXIT, LeaderExit::decode),
            tree_end: Slot::read(page, position::TREE_END, TreeEnd::decode),
        }
    }

    /// Whether nothing was ever recorded: no shim has got so far as to run anything.
    pub fn are_blank(&self) -> bool {
        *self == Self::default()
    }

    /// The names of those that were written and cannot be read.
    pub fn unreadable(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        let mut note = |unreadable, name| {
            if unreadable {
                names.push(name);
            }
        };
        note(self.identity == Slot::Unreadable, "identity");
        note(self.start == Slot::Unreadable, "start");
        note(self.leader_exit == Slot::Unreadable, "leader's exit");
        note(self.tree_end == Slot::Unreadable, "tree's end");
        names
    }
}

#[cfg(test)]
mod tests {
    use heeler_shim::record::Stage;

    use super::*;

    #[test]
    fn damage_to_one_record_costs_no_other() {
        let start = Start::Failed {
            stage: Stage::Exec,
            errno: 2,
        };
        let mut page = [0; BLOCKS_START as usize];
        page[1024..2048].copy_from_slice(&start.encode());
        page[2048] = 1;
        let records = Records::read(&page);
        assert_eq!(records.start, Slot::Whole(start));
        assert_eq!(records.identity, Slot::Empty);
        assert_eq!(records.leader_exit, Slot::Unreadable);
        assert_eq!(records.unreadable(), ["leader's exit"]);
        assert!(!records.are_blank());
    }
}
