//! The records of a task file. Each is read by itself, so damage to one costs no other.

use heeler_shim::{
    log::BLOCKS_START,
    record::{SLOT, Unreadable, VERSION, position},
};

pub(crate) use heeler_shim::record::{
    AttemptBegin, CgroupPath, Identity, LeaderExit, Limit, LimitCause, OutputState, Stage,
};
pub use heeler_shim::record::{Exit, Start, TreeEnd};

/// The page with the records.
pub(super) type HeaderPage = [u8; BLOCKS_START as usize];

/// The content of one record's slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Slot<T> {
    /// Nothing was ever written.
    #[default]
    Empty,
    /// The record is damaged or half-written.
    Damaged,
    /// The record is of a format version that this build does not read.
    UnknownVersion(u16),
    Whole(T),
}

/// The records that a shim has written so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Records {
    pub identity: Slot<Identity>,
    pub start: Slot<Start>,
    pub leader_exit: Slot<LeaderExit>,
    pub tree_end: Slot<TreeEnd>,
    pub output: Slot<OutputState>,
    pub attempt: Slot<AttemptBegin>,
}

impl<T: Copy> Slot<T> {
    /// The record, if it can be read.
    pub fn whole(&self) -> Option<T> {
        match self {
            Self::Whole(record) => Some(*record),
            Self::Empty | Self::Damaged | Self::UnknownVersion(_) => None,
        }
    }

    fn read<const SIZE: usize>(
        page: &HeaderPage,
        at: u64,
        decode: fn(&[u8; SIZE]) -> Result<T, Unreadable>,
    ) -> Self {
        let at = at as usize;
        let mut bytes = [0; SIZE];
        bytes.copy_from_slice(&page[at..at + SIZE]);
        Self::of(decode(&bytes))
    }

    fn of(decoded: Result<T, Unreadable>) -> Self {
        match decoded {
            Ok(record) => Self::Whole(record),
            Err(Unreadable::Empty) => Self::Empty,
            Err(Unreadable::Damaged) => Self::Damaged,
            Err(Unreadable::UnknownVersion(version)) => Self::UnknownVersion(version),
        }
    }

    fn problem(&self, name: &str) -> Option<String> {
        match self {
            Self::Empty | Self::Whole(_) => None,
            Self::Damaged => Some(format!("{name}: damaged")),
            Self::UnknownVersion(version) => Some(format!(
                "{name}: format version {version}, this server reads version {VERSION}"
            )),
        }
    }
}

impl Slot<OutputState> {
    /// The newer one of the two records, which are written in turn.
    pub(super) fn of_output(slots: &[u8; 2 * SLOT]) -> Self {
        let (one, other) = slots.split_at(SLOT);
        let decode = |slot: &[u8]| match slot.try_into() {
            Ok(slot) => Self::of(OutputState::decode(slot)),
            Err(_) => Self::Damaged,
        };
        match (decode(one), decode(other)) {
            (Self::Whole(one), Self::Whole(other)) if other.number > one.number => {
                Self::Whole(other)
            }
            (whole @ Self::Whole(_), _) | (_, whole @ Self::Whole(_)) => whole,
            (Self::Empty, other) => other,
            (one @ (Self::Damaged | Self::UnknownVersion(_)), _) => one,
        }
    }
}

impl Records {
    pub(super) fn read(page: &HeaderPage) -> Self {
        let mut output = [0; 2 * SLOT];
        let at = position::OUTPUT[0] as usize;
        output.copy_from_slice(&page[at..at + 2 * SLOT]);
        Self {
            identity: Slot::read(page, position::IDENTITY, Identity::decode),
            start: Slot::read(page, position::START, Start::decode),
            leader_exit: Slot::read(page, position::LEADER_EXIT, LeaderExit::decode),
            tree_end: Slot::read(page, position::TREE_END, TreeEnd::decode),
            output: Slot::of_output(&output),
            attempt: Slot::read(page, position::ATTEMPT, AttemptBegin::decode),
        }
    }

    /// The records of one attempt: without those of its leader, if the file has them of another one.
    pub(crate) fn of_attempt(self, attempt: u32) -> Self {
        let recorded = match self.attempt {
            Slot::Whole(begin) => begin.attempt,
            // Damage hides no other record.
            Slot::Damaged => attempt,
            Slot::Empty | Slot::UnknownVersion(_) => 1,
        };
        if recorded == attempt {
            return self;
        }
        Self {
            start: Slot::Empty,
            leader_exit: Slot::Empty,
            tree_end: Slot::Empty,
            ..self
        }
    }

    /// Returns whether nothing was ever recorded, so that no shim can have run anything.
    pub(crate) fn are_blank(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether the task has ended or could not be started.
    pub(super) fn show_an_end(&self) -> bool {
        let failed = matches!(self.start.whole(), Some(Start::Failed { .. }));
        failed || self.tree_end.whole().is_some()
    }

    /// Describes the records that were written and cannot be read.
    pub(crate) fn unreadable(&self) -> Vec<String> {
        let problems = [
            self.identity.problem("identity"),
            self.start.problem("start"),
            self.leader_exit.problem("leader's exit"),
            self.tree_end.problem("tree's end"),
            self.output.problem("output's state"),
            self.attempt.problem("attempt's begin"),
        ];
        problems.into_iter().flatten().collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use heeler_shim::checksum::crc32;

    use super::*;

    fn failed() -> Start {
        Start::Failed {
            stage: Stage::Exec,
            errno: 2,
        }
    }

    /// R4
    #[test]
    fn damage_to_one_record_costs_no_other() {
        let mut page = [0; BLOCKS_START as usize];
        page[1024..1536].copy_from_slice(&failed().encode());
        page[1536] = 1;
        let records = Records::read(&page);
        assert_eq!(records.start, Slot::Whole(failed()));
        assert_eq!(records.identity, Slot::Empty);
        assert_eq!(records.leader_exit, Slot::Damaged);
        assert_eq!(records.unreadable(), ["leader's exit: damaged"]);
        assert!(!records.are_blank());
    }

    /// R4
    #[test]
    fn damage_to_the_number_of_the_attempt_hides_no_record_of_it() {
        let mut page = [0; BLOCKS_START as usize];
        page[1024..1536].copy_from_slice(&failed().encode());
        let before = Records::read(&page).of_attempt(2);
        assert_eq!(before.start, Slot::Empty, "that of the first attempt");
        page[position::ATTEMPT as usize] = 1;
        let damaged = Records::read(&page).of_attempt(2);
        assert_eq!(damaged.start, Slot::Whole(failed()));
    }

    /// O17
    #[test]
    fn the_newer_whole_one_of_two_output_states_counts() {
        let state = |number| OutputState {
            number,
            ..OutputState::default()
        };
        let slots = |one: &[u8], other: &[u8]| {
            let mut slots = [0; 2 * SLOT];
            slots[..one.len()].copy_from_slice(one);
            slots[SLOT..SLOT + other.len()].copy_from_slice(other);
            Slot::of_output(&slots)
        };
        let (one, two, three) = (state(1).encode(), state(2).encode(), state(3).encode());
        assert_eq!(slots(&[], &[]), Slot::Empty);
        assert_eq!(slots(&one, &[]), Slot::Whole(state(1)));
        assert_eq!(slots(&one, &two), Slot::Whole(state(2)));
        assert_eq!(slots(&three, &two), Slot::Whole(state(3)));
        assert_eq!(slots(&three[..100], &two), Slot::Whole(state(2)));
        assert_eq!(slots(&one[..100], &[]), Slot::Damaged);
    }

    /// R8
    #[test]
    fn a_record_of_an_unknown_version_is_refused_with_both_versions() {
        let mut slot = failed().encode();
        slot[4..6].copy_from_slice(&9u16.to_le_bytes());
        let len = usize::from(u16::from_le_bytes([slot[6], slot[7]]));
        let sum = crc32(&slot[..8 + len]);
        slot[SLOT - 4..].copy_from_slice(&sum.to_le_bytes());
        let mut page = [0; BLOCKS_START as usize];
        page[1024..1536].copy_from_slice(&slot);
        let records = Records::read(&page);
        assert_eq!(records.start, Slot::UnknownVersion(9));
        assert_eq!(
            records.unreadable(),
            ["start: format version 9, this server reads version 2"]
        );
        assert!(!records.are_blank());
    }
}
