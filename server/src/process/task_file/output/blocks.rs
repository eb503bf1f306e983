//! The blocks of a file in the order of their output.
//!
//! ```text
//!  in the file    | head 0 1 | 6 7 4 5
//!  in order         0 1        4 5 6 7
//! ```
//!
//! The head is followed by the ring, whose oldest block is found by a bisection. A live shim overwrites that
//! block next, at any time, and may shorten the file.

use std::{fs::File, io};

use heeler_shim::{
    layout::Blocks as Removed,
    log::{BLOCK_HEADER, BLOCK_SIZE, BLOCKS_START, BlockHeader, block_position},
    record::{OutputState, Ring},
};

use super::{frames::block_header, read_up_to};

/// A block's bytes, as far as the file has them.
pub(super) type Block<'b> = &'b [u8];

/// The blocks of a file, by their index in the order of output.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    file: &'a File,
    ring: Ring,
    /// The number of blocks in the file, removed ones not counted.
    places: u64,
    /// The place of the oldest block of the ring.
    oldest: u64,
    /// The number of blocks in the order of output.
    count: u64,
}

/// A read of a block.
#[derive(Debug)]
pub(super) enum ReadBlock<'b> {
    Whole(Block<'b>),
    /// The header is damaged, or the block is gone.
    Damaged,
    /// The shim has overwritten the block meanwhile.
    Overwritten,
}

impl<'a> Blocks<'a> {
    /// The blocks of a file under a state. The oldest `skipped` blocks of the ring count as overwritten.
    pub(super) fn new(file: &'a File, state: &OutputState, skipped: u64) -> io::Result<Self> {
        let size = file.metadata()?.len();
        let all = size
            .saturating_sub(BLOCKS_START)
            .div_ceil(BLOCK_SIZE as u64);
        let mut ring = state.ring.unwrap_or(Ring {
            head: all,
            removed: Removed::default(),
            end: all,
        });
        ring.end = ring.end.min(all);
        ring.removed.to = ring.removed.to.min(ring.end);
        ring.removed.from = ring.removed.from.min(ring.removed.to);
        let places = ring.end - ring.removed.len();
        ring.head = ring.head.min(places);
        let mut blocks = Self {
            file,
            ring,
            places,
            oldest: ring.head,
            count: places,
        };
        blocks.oldest = blocks.find_oldest()?;
        let skipped = skipped.min((places - ring.head).saturating_sub(1));
        blocks.oldest = blocks.place(ring.head + skipped);
        blocks.count -= skipped;
        Ok(blocks)
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The number of blocks that are never overwritten.
    pub(super) fn head(&self) -> u64 {
        self.ring.head
    }

    /// Returns the first offset of the first readable block from `from` on, before `to`.
    pub(super) fn first_offset(&self, from: u64, to: u64) -> io::Result<Option<u64>> {
        for index in from..to {
            if let Some(offset) = self.offset_at(self.place(index))? {
                return Ok(Some(offset));
            }
        }
        Ok(None)
    }

    /// Finds the last block that begins at or before the offset. A damaged block counts as beginning where
    /// the next readable one does.
    pub(super) fn containing(&self, offset: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.count);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.first_offset(middle, high)? {
                Some(first) if first <= offset => low = middle,
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }

    /// Reads a block. One of the ring is checked again afterwards.
    pub(super) fn read<'b>(&self, index: u64, buffer: &'b mut [u8]) -> io::Result<ReadBlock<'b>> {
        let place = self.place(index);
        let read = read_up_to(self.file, buffer, self.position(place))?;
        let block: Block<'b> = &buffer[..read];
        let header = block_header(block);
        if index >= self.ring.head && self.offset_at(place)? != header.map(|it| it.first_offset) {
            return Ok(ReadBlock::Overwritten);
        }
        Ok(match header {
            Some(_) => ReadBlock::Whole(block),
            None => ReadBlock::Damaged,
        })
    }

    /// The ring is in order from its oldest block on. Those before it in the file are newer than its first
    /// place says.
    fn find_oldest(&self) -> io::Result<u64> {
        let Some((first, newest_run)) = self.readable(self.ring.head, self.places)? else {
            return Ok(self.ring.head);
        };
        let (mut low, mut high) = (first, self.places);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.readable(middle, high)? {
                Some((_, offset)) if offset < newest_run => high = middle,
                Some(_) | None => low = middle,
            }
        }
        Ok(match high == self.places {
            true => self.ring.head,
            false => high,
        })
    }

    /// The first readable block from a place on, with its first offset.
    fn readable(&self, from: u64, to: u64) -> io::Result<Option<(u64, u64)>> {
        for place in from..to {
            if let Some(offset) = self.offset_at(place)? {
                return Ok(Some((place, offset)));
            }
        }
        Ok(None)
    }

    /// The place of a block in the file, removed ones not counted.
    fn place(&self, index: u64) -> u64 {
        let (head, ring) = (self.ring.head, self.places - self.ring.head);
        match index.checked_sub(head) {
            None => index,
            Some(at) => head + (self.oldest - head + at) % ring.max(1),
        }
    }

    fn position(&self, place: u64) -> u64 {
        let removed = self.ring.removed;
        block_position(match place < removed.from {
            true => place,
            false => place + removed.len(),
        })
    }

    fn offset_at(&self, place: u64) -> io::Result<Option<u64>> {
        let mut bytes = [0; BLOCK_HEADER];
        read_up_to(self.file, &mut bytes, self.position(place))?;
        Ok(BlockHeader::decode(&bytes).map(|header| header.first_offset))
    }
}
