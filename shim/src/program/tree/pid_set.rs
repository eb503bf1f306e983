//! A set of pids: one bit for each, in pages that exist once they are written to.

use crate::program::pages::Numbers;

/// One more than the largest pid there can be.
const PIDS: usize = 4 * 1024 * 1024;

pub(super) struct PidSet {
    /// Without memory the set stays empty.
    bits: Option<Numbers>,
}

impl PidSet {
    pub(super) fn new() -> Self {
        Self {
            bits: Numbers::new(PIDS / 64),
        }
    }

    pub(super) fn contains(&mut self, pid: u32) -> bool {
        self.word(pid).is_some_and(|word| *word & bit(pid) != 0)
    }

    pub(super) fn insert(&mut self, pid: u32) {
        if let Some(word) = self.word(pid) {
            *word |= bit(pid);
        }
    }

    pub(super) fn remove(&mut self, pid: u32) {
        if let Some(word) = self.word(pid) {
            *word &= !bit(pid);
        }
    }

    fn word(&mut self, pid: u32) -> Option<&mut u64> {
        self.bits.as_mut()?.items().get_mut(pid as usize / 64)
    }
}

fn bit(pid: u32) -> u64 {
    1 << (pid % 64)
}
