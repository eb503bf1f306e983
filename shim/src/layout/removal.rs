//! A smaller bound for a file that has more blocks: the blocks that must go, and the log without them.
//!
//! The oldest blocks go first, then the end of the head; the newest stay. The blocks behind a removed range
//! move down, so that the file becomes shorter.

use super::{BLOCK_SIZE, Log, bound::MIN_RING};

/// The most blocks of the ring that are kept where some must move: 256 MiB, which a shim copies in a
/// fraction of a second.
const MOST_MOVED: u64 = 4096;

/// A range of blocks by their index, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blocks {
    pub from: u64,
    pub to: u64,
}

impl Blocks {
    pub const fn len(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }

    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The blocks to remove, and the head that is left. The ranges are to be removed in this order: the first
/// one is behind the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    pub ranges: [Blocks; 2],
    pub head: u64,
}

impl Log {
    /// Lowers the bound, and returns the blocks that are too many for it.
    pub fn lower_bound(&mut self, blocks: u64) -> Removal {
        self.bound.blocks = self.bound.blocks.min(blocks);
        self.removal(self.bound.blocks)
    }

    /// The blocks that are too many for a file of so many.
    fn removal(&self, blocks: u64) -> Removal {
        let short_head = self
            .head
            .min(blocks.saturating_sub(MIN_RING))
            .min((blocks / 4).max(1));
        if self.blocks <= blocks {
            let fits = self.head + MIN_RING <= blocks;
            return Removal {
                ranges: [Blocks::default(); 2],
                head: if fits { self.head } else { short_head },
            };
        }
        let ring = self.blocks - self.head;
        if ring == 0 {
            // The newest output is in the head, whose blocks are in order.
            let kept = (blocks - short_head).min(MOST_MOVED);
            let oldest = Blocks {
                from: short_head,
                to: self.blocks - kept,
            };
            return Removal {
                ranges: [Blocks::default(), oldest],
                head: short_head,
            };
        }
        let gone = ring - ring.min(blocks - short_head).min(MOST_MOVED);
        // The oldest blocks follow the one that is being filled, and go on at the ring's start.
        let next = self.block.map_or(0, |block| block + 1).max(self.head);
        let behind = gone.min(self.blocks - next);
        Removal {
            ranges: [
                Blocks {
                    from: next,
                    to: next + behind,
                },
                Blocks {
                    from: short_head,
                    to: self.head + (gone - behind),
                },
            ],
            head: short_head,
        }
    }

    /// Takes note that the ring begins earlier, at this block and offset.
    pub const fn set_head(&mut self, head: u64, head_end: u64) {
        self.head = head;
        self.head_end = head_end;
    }

    /// Takes note that a range of blocks was removed from the file.
    pub const fn removed(&mut self, range: Blocks) {
        self.blocks -= range.len();
        if let Some(block) = self.block
            && block >= range.to
        {
            self.block = Some(block - range.len());
        }
    }

    /// The head that is left if the file cannot grow and its other blocks become the ring; `None` if it has
    /// too few.
    pub fn head_of_full_file(&self) -> Option<u64> {
        let spare = self.blocks.checked_sub(MIN_RING)?;
        Some(self.head.min(spare).min((self.blocks / 4).max(1)))
    }

    /// Continues at the ring's start. To be called at the end of the file, where the blocks of the ring
    /// are in order.
    pub const fn wrap(&mut self) {
        self.block = self.head.checked_sub(1);
        self.used = BLOCK_SIZE;
    }
}
