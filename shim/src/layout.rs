//! The position of the next output in a task file: the arithmetic of blocks and frames, without I/O.
//!
//! A [`Log`] is the end of the written output. Bytes from a pipe are cut into [`Piece`]s, each a frame
//! with the headers that must precede it. A piece moves the log, by [`Log::advance`], only once all of it
//! is in the file.
//!
//! ```text
//!  within the bound      | head 0 1 | 2 3 4 5            every block is new
//!  beyond it             | head 0 1 | 6 7 4 5            the ring: block 2 was overwritten, then 3
//!                                       ^ ^ the oldest
//!                                       the block that is being filled
//! ```
//!
//! The head is never overwritten. Offsets are not touched by any of this: each block names its own.

mod bound;
mod removal;

pub use bound::{Bound, MIN_BLOCKS, blocks_within};
pub use removal::{Blocks, Removal};

use crate::{
    log::{
        BLOCK_HEADER, BLOCK_SIZE, BlockHeader, FRAME_HEADER, FRAME_TAG, FrameHeader, Stream,
        block_position,
    },
    stamp::Stamp,
};

/// The longest head of a piece: the unusable end of a block, a block header and a frame header.
pub const MAX_HEAD: usize = FRAME_HEADER + BLOCK_HEADER + FRAME_HEADER;

/// Zeros behind a frame that was written over older bytes: they are the header of no frame.
const TERMINATOR: [u8; 4] = [0; 4];

/// The end of the written output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Log {
    offset: u64,
    /// The block that is being filled; `None` before block 0, and after a wrap to it.
    block: Option<u64>,
    /// The bytes of that block that are used.
    used: usize,
    surface: Surface,
    /// The number of blocks in the file.
    blocks: u64,
    /// The number of blocks ever begun.
    begun: u64,
    /// The number of blocks in the head, and the offset of its end.
    head: u64,
    head_end: u64,
    bound: Bound,
}

/// The content of a block before it is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surface {
    /// Nothing: the block is at the end of the file, which ends with its last frame.
    Fresh,
    /// Older output, behind which a frame must be closed.
    Used,
}

/// A frame, and the bytes that must be written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    position: u64,
    surface: Surface,
    /// Zeros, to the end of a block that has no room for a frame.
    padding: usize,
    /// The block that this piece begins, with its header.
    block: Option<(u64, BlockHeader)>,
    frame: FrameHeader,
    /// The bytes of its block behind the piece.
    room: usize,
}

/// The bytes that precede the output bytes of a piece in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Log {
    /// The log of a file without output.
    pub const fn new(bound: Bound) -> Self {
        Self {
            offset: 0,
            block: None,
            used: BLOCK_SIZE,
            surface: Surface::Fresh,
            blocks: 0,
            begun: 0,
            head: 0,
            head_end: 0,
            bound,
        }
    }

    /// The number of output bytes so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// The position behind the last piece.
    pub const fn position(&self) -> u64 {
        match self.block {
            Some(block) => block_position(block) + self.used as u64,
            None => block_position(0),
        }
    }

    /// The length of the file. Its last block may be shorter than a block.
    pub const fn size(&self) -> u64 {
        match self.surface {
            Surface::Fresh if self.is_at_end() => self.position(),
            Surface::Fresh | Surface::Used => block_position(self.blocks),
        }
    }

    /// The number of blocks in the file.
    pub const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Returns whether the block that is being filled is the last one of the file.
    pub const fn is_at_end(&self) -> bool {
        matches!(self.block, Some(block) if block + 1 == self.blocks)
    }

    pub const fn bound(&self) -> Bound {
        self.bound
    }

    /// The number of blocks in the head.
    pub const fn head(&self) -> u64 {
        self.head
    }

    /// The offset of the head's end, once there is a block behind it.
    pub const fn head_end(&self) -> u64 {
        self.head_end
    }

    /// Returns the piece for the first of `len` bytes, as many as fit in the block; `None` if the output
    /// has reached its total.
    pub fn piece(&self, stream: Stream, time: Stamp, len: usize) -> Option<Piece> {
        let room = BLOCK_SIZE - self.used;
        let frame = |room: usize| FrameHeader {
            stream,
            len: len.min(room - FRAME_HEADER) as u32,
            time,
        };
        if room > FRAME_HEADER {
            let frame = frame(room);
            return Some(Piece {
                position: self.position(),
                surface: self.surface,
                padding: 0,
                block: None,
                frame,
                room: room - FRAME_HEADER - frame.len as usize,
            });
        }
        let (block, surface) = self.next_block()?;
        let follows = self.surface == Surface::Fresh && surface == Surface::Fresh;
        let padding = if follows && self.block.is_some() {
            room
        } else {
            0
        };
        let header = BlockHeader {
            first_offset: self.offset,
        };
        let frame = frame(BLOCK_SIZE - BLOCK_HEADER);
        Some(Piece {
            position: block_position(block) - padding as u64,
            surface,
            padding,
            block: Some((block, header)),
            frame,
            room: BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER - frame.len as usize,
        })
    }

    /// Moves the end behind a piece.
    pub const fn advance(&mut self, piece: &Piece) {
        if let Some((block, _)) = piece.block {
            self.begin(block, piece.surface);
        }
        self.used = BLOCK_SIZE - piece.room;
        self.offset += piece.frame.len as u64;
    }

    /// Returns whether the file may have more blocks than it has: only a disk that refused them keeps it
    /// smaller.
    pub const fn is_below_bound(&self) -> bool {
        self.blocks < self.bound.blocks
    }

    /// The block behind another one in the ring.
    pub const fn after(&self, block: u64) -> u64 {
        if block + 1 < self.blocks {
            block + 1
        } else {
            self.head
        }
    }

    /// The next block: one with older output, a new one at the end, or the first one of the ring. At the
    /// end of the file the bound is looked at again, since it may have been raised by then.
    fn next_block(&self) -> Option<(u64, Surface)> {
        if self.bound.total.is_some_and(|total| self.begun >= total) {
            return None;
        }
        let next = self.block.map_or(0, |block| block + 1);
        Some(if next < self.blocks {
            (next, Surface::Used)
        } else if next < self.bound.blocks {
            (next, Surface::Fresh)
        } else {
            (self.head, Surface::Used)
        })
    }

    const fn begin(&mut self, block: u64, surface: Surface) {
        self.block = Some(block);
        self.surface = surface;
        self.begun += 1;
        if let Surface::Used = surface {
            return;
        }
        self.blocks = block + 1;
        if block == self.head {
            let wanted = self.offset < self.bound.head_bytes;
            if wanted && block + bound::MIN_RING < self.bound.blocks {
                self.head += 1;
            } else {
                self.head_end = self.offset;
            }
        }
    }
}

impl Piece {
    /// The file position of the first byte of the piece.
    pub const fn position(&self) -> u64 {
        self.position
    }

    pub const fn surface(&self) -> Surface {
        self.surface
    }

    /// The block with older output that this piece begins to overwrite.
    pub const fn overwritten(&self) -> Option<u64> {
        match (self.surface, self.block) {
            (Surface::Used, Some((block, _))) => Some(block),
            (Surface::Fresh, _) | (Surface::Used, None) => None,
        }
    }

    /// The number of output bytes in the piece.
    pub const fn output(&self) -> usize {
        self.frame.len as usize
    }

    /// The number of file bytes of the piece.
    pub const fn size(&self) -> usize {
        let block = if self.block.is_some() {
            BLOCK_HEADER
        } else {
            0
        };
        self.padding + block + FRAME_HEADER + self.output()
    }

    /// Returns the bytes to write before the output bytes.
    ///
    /// On a used surface the frame is not valid yet: it becomes so by [`Self::seal`], once everything else
    /// is written. Until then the block ends before it.
    pub fn head(&self) -> Head {
        let mut head = Head {
            bytes: [0; MAX_HEAD],
            len: self.padding,
        };
        if let Some((_, block)) = self.block {
            head.push(&block.encode());
        }
        let mut frame = self.frame.encode();
        if self.surface == Surface::Used {
            frame[FRAME_TAG] = 0;
        }
        head.push(&frame);
        head
    }

    /// The bytes to write behind the output bytes.
    pub fn foot(&self) -> &'static [u8] {
        let len = match self.surface {
            Surface::Fresh => 0,
            Surface::Used => self.room.min(TERMINATOR.len()),
        };
        TERMINATOR.get(..len).unwrap_or_default()
    }

    /// The byte that makes the frame valid on a used surface, and its position. A single byte is never
    /// written in part.
    pub fn seal(&self) -> (u8, u64) {
        let header = self.size() - self.output() - FRAME_HEADER;
        let position = self.position + (header + FRAME_TAG) as u64;
        (self.frame.encode()[FRAME_TAG], position)
    }
}

impl Head {
    pub const EMPTY: Self = Self {
        bytes: [0; MAX_HEAD],
        len: 0,
    };

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(free) = self.bytes.get_mut(self.len..end) {
            free.copy_from_slice(bytes);
            self.len = end;
        }
    }
}

#[cfg(test)]
mod tests;
