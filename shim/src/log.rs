//! The output part of a task file: blocks of frames.
//!
//! ```text
//! file   | header page 4 KiB | block 0, 64 KiB | block 1 | ...
//! block  | magic, first offset, checksum | frame | frame | ... | zeros
//! frame  | length and stream, wall clock, monotonic clock | bytes |
//! ```
//!
//! An *offset* counts output bytes from 0, of both streams together. Each block names the offset of
//! its first byte, so a bisection over blocks finds any offset, a damaged block costs only itself, and the
//! oldest blocks can be overwritten by new ones without moving any offset ([`crate::layout`]). A frame
//! never crosses a block. A frame without a stream (zeros, or the end of the file) ends its block.

use crate::{
    checksum::crc32,
    stamp::{STAMP, Stamp},
};

/// The position of block 0, behind the header page.
pub const BLOCKS_START: u64 = 4096;
pub const BLOCK_SIZE: usize = 64 * 1024;
pub const BLOCK_HEADER: usize = 24;
pub const FRAME_HEADER: usize = 4 + STAMP;
/// The byte of a frame header that names the stream. While it is zero, there is no frame.
pub const FRAME_TAG: usize = 3;

const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"HLB1");

/// The pipe that output came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Returns the position of block `index` in the file.
pub const fn block_position(index: u64) -> u64 {
    BLOCKS_START + index * BLOCK_SIZE as u64
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHeader {
    /// The offset of the block's first output byte.
    pub first_offset: u64,
}

impl BlockHeader {
    pub fn encode(&self) -> [u8; BLOCK_HEADER] {
        let mut out = [0; BLOCK_HEADER];
        out[0..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.first_offset.to_le_bytes());
        let sum = crc32(&out[..16]);
        out[16..20].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Returns `None` if the bytes are not a whole block header.
    pub fn decode(bytes: &[u8; BLOCK_HEADER]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        if word(0) != BLOCK_MAGIC || word(16) != crc32(&bytes[..16]) {
            return None;
        }
        Some(Self {
            first_offset: u64::from(word(8)) | u64::from(word(12)) << 32,
        })
    }
}

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub stream: Stream,
    /// The number of output bytes: from 1 to what fits in a block.
    pub len: u32,
    /// The moment at which the bytes were read from the pipe.
    pub time: Stamp,
}

impl FrameHeader {
    pub fn encode(&self) -> [u8; FRAME_HEADER] {
        let tag: u32 = match self.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
        };
        let mut out = [0; FRAME_HEADER];
        out[0..4].copy_from_slice(&(self.len | tag << 24).to_le_bytes());
        out[4..].copy_from_slice(&self.time.encode());
        out
    }

    /// Returns `None` if the block has no more frames.
    pub fn decode(bytes: &[u8; FRAME_HEADER]) -> Option<Self> {
        let mut head = [0; 4];
        head.copy_from_slice(&bytes[0..4]);
        let mut time = [0; STAMP];
        time.copy_from_slice(&bytes[4..]);
        let word = u32::from_le_bytes(head);
        let len = word & 0x00FF_FFFF;
        let stream = match word >> 24 {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            _ => return None,
        };
        if len == 0 || len as usize > BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER {
            return None;
        }
        Some(Self {
            stream,
            len,
            time: Stamp::decode(&time),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_decode_to_what_was_encoded() {
        let block = BlockHeader {
            first_offset: u64::MAX / 3,
        };
        assert_eq!(BlockHeader::decode(&block.encode()), Some(block));
        let frame = FrameHeader {
            stream: Stream::Stderr,
            len: 65_000,
            time: Stamp {
                wall_micros: 1 << 50,
                monotonic_micros: 1 << 40,
            },
        };
        assert_eq!(FrameHeader::decode(&frame.encode()), Some(frame));
    }

    #[test]
    fn a_block_header_with_a_flipped_bit_is_rejected() {
        let good = BlockHeader { first_offset: 77 }.encode();
        for bit in 0..20 * 8 {
            let mut bad = good;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(BlockHeader::decode(&bad), None, "bit {bit}");
        }
    }

    #[test]
    fn zeros_are_not_a_frame() {
        assert_eq!(FrameHeader::decode(&[0; FRAME_HEADER]), None);
    }
}
