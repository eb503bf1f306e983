//! The limit on a task's output, as its shim gets it.

use crate::layout::{Bound, blocks_within};

/// The smallest limit: a head and a ring of the fewest blocks.
pub const MIN_OUTPUT_BYTES: u64 = 256 * 1024;
/// The bytes of a limit that the head cannot have.
pub const MIN_TAIL_BYTES: u64 = 192 * 1024;

/// The length of an encoded policy.
pub const OUTPUT_POLICY: usize = 32;

/// The limit on a task's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutputPolicy {
    /// The most bytes on disk, framing included.
    pub max_bytes: u64,
    /// The output bytes to keep from the beginning when the rest rotates.
    pub head_bytes: u64,
    pub on_limit: OnLimit,
    /// The most bytes on disk by order of the server, which may lower it later. Beyond it the output
    /// rotates, whatever `on_limit` is.
    pub budget: u64,
}

/// The treatment of output beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLimit {
    /// The oldest output behind the head is overwritten.
    Rotate,
    /// New output is dropped.
    Truncate,
    /// The tree is killed, and new output is dropped.
    Kill,
}

impl OutputPolicy {
    /// The bound of a file under this policy.
    pub const fn bound(&self) -> Bound {
        let (own, budget) = (blocks_within(self.max_bytes), blocks_within(self.budget));
        let (blocks, total) = match self.on_limit {
            OnLimit::Rotate if own < budget => (own, None),
            OnLimit::Rotate => (budget, None),
            OnLimit::Truncate | OnLimit::Kill => (budget, Some(own)),
        };
        Bound {
            blocks,
            total,
            head_bytes: self.head_bytes,
        }
    }

    /// Returns whether output rotates within this bound because the policy says so.
    pub const fn rotates_by_itself(&self, bound: &Bound) -> bool {
        matches!(self.on_limit, OnLimit::Rotate) && bound.blocks == blocks_within(self.max_bytes)
    }

    pub fn encode(&self) -> [u8; OUTPUT_POLICY] {
        let on_limit = match self.on_limit {
            OnLimit::Rotate => 1,
            OnLimit::Truncate => 2,
            OnLimit::Kill => 3,
        };
        let mut out = [0; OUTPUT_POLICY];
        let words = [self.max_bytes, self.head_bytes, on_limit, self.budget];
        for (place, word) in out.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    /// Returns `None` if the bytes are no policy.
    pub fn decode(bytes: &[u8; OUTPUT_POLICY]) -> Option<Self> {
        let word = |index: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[8 * index..8 * index + 8]);
            u64::from_le_bytes(word)
        };
        Some(Self {
            max_bytes: word(0),
            head_bytes: word(1),
            on_limit: match word(2) {
                1 => OnLimit::Rotate,
                2 => OnLimit::Truncate,
                3 => OnLimit::Kill,
                _ => return None,
            },
            budget: word(3),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_decode_to_what_was_encoded() {
        for on_limit in [OnLimit::Rotate, OnLimit::Truncate, OnLimit::Kill] {
            let policy = OutputPolicy {
                max_bytes: 1 << 40,
                head_bytes: 3,
                on_limit,
                budget: u64::MAX,
            };
            assert_eq!(OutputPolicy::decode(&policy.encode()), Some(policy));
        }
        assert_eq!(OutputPolicy::decode(&[9; OUTPUT_POLICY]), None);
    }

    /// O18
    #[test]
    fn a_budget_below_the_limit_rotates_the_output() {
        for on_limit in [OnLimit::Rotate, OnLimit::Truncate, OnLimit::Kill] {
            let policy = OutputPolicy {
                max_bytes: 64 << 20,
                head_bytes: 1 << 20,
                on_limit,
                budget: 1 << 20,
            };
            let bound = policy.bound();
            assert_eq!(bound.blocks, blocks_within(1 << 20));
            assert!(!policy.rotates_by_itself(&bound));
        }
    }
}
