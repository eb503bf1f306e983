//! The bound on the output part of a file, in blocks.

use crate::log::{BLOCK_SIZE, BLOCKS_START};

/// The fewest blocks behind the head. While one is overwritten, the other one is whole.
pub(super) const MIN_RING: u64 = 2;
/// The fewest blocks of a bounded file: a head and a ring.
pub const MIN_BLOCKS: u64 = 1 + MIN_RING;

/// The file system's own blocks for the file: the list of its extents, and the rounding of its end.
const OVERHEAD: u64 = 8 * 1024;

/// The rules for a file's blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The most blocks in the file. Beyond it the oldest one behind the head is overwritten.
    pub blocks: u64,
    /// The most blocks in all, overwritten ones included; `None`: any number.
    pub total: Option<u64>,
    /// The output bytes to keep from the beginning, in whole blocks.
    pub head_bytes: u64,
}

impl Bound {
    /// No bound at all.
    pub const NONE: Self = Self {
        blocks: u64::MAX,
        total: None,
        head_bytes: 0,
    };
}

/// Returns the number of blocks of a file that takes at most so many bytes on disk.
pub const fn blocks_within(bytes: u64) -> u64 {
    let blocks = bytes.saturating_sub(BLOCKS_START + OVERHEAD) / BLOCK_SIZE as u64;
    if blocks < MIN_BLOCKS {
        MIN_BLOCKS
    } else {
        blocks
    }
}
