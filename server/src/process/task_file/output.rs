//! The output part of a file: found by offset, read as far as it is whole.

use std::{fs::File, io, os::unix::fs::FileExt};

use heeler_shim::log::{
    BLOCK_HEADER, BLOCK_SIZE, BLOCKS_START, BlockHeader, FRAME_HEADER, FrameHeader, Stream as Tag,
    block_position,
};

use super::Reading;
use crate::task::{Chunk, Stream, Tail, Timestamp};

/// A file with output, be it on disk or in memory.
pub(super) struct Output<'a>(pub(super) &'a File);

impl Output<'_> {
    /// Up to `limit` bytes of output from `offset` on.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        let blocks = self.blocks()?;
        let end = self.end(blocks)?;
        let mut reading = Reading {
            chunks: Vec::new(),
            end,
        };
        if offset >= end {
            return Ok(reading);
        }
        let mut left = limit;
        let mut buffer = vec![0; BLOCK_SIZE];
        for index in self.block_of(offset, blocks)?..blocks {
            if left == 0 {
                break;
            }
            let read = read_up_to(self.0, &mut buffer, block_position(index))?;
            for (at, frame, bytes) in frames(&buffer[..read]) {
                take(
                    &mut reading.chunks,
                    offset,
                    end,
                    &mut left,
                    at,
                    frame,
                    bytes,
                );
            }
        }
        Ok(reading)
    }

    /// The last `limit` bytes of output.
    pub(super) fn tail(&self, limit: usize) -> io::Result<Tail> {
        let end = self.end(self.blocks()?)?;
        let reading = self.read(end.saturating_sub(limit as u64), limit)?;
        Ok(Tail {
            chunks: reading.chunks,
            end: reading.end,
        })
    }

    /// How many blocks have begun.
    fn blocks(&self) -> io::Result<u64> {
        let size = self.0.metadata()?.len();
        Ok(size
            .saturating_sub(BLOCKS_START)
            .div_ceil(BLOCK_SIZE as u64))
    }

    /// The offset behind the last byte: looked for in the last block that can be read.
    fn end(&self, blocks: u64) -> io::Result<u64> {
        if blocks == 0 {
            return Ok(0);
        }
        let mut buffer = vec![0; BLOCK_SIZE];
        for index in (0..blocks).rev() {
            let read = read_up_to(self.0, &mut buffer, block_position(index))?;
            let Some(header) = block_header(&buffer[..read]) else {
                continue;
            };
            let last = frames(&buffer[..read]).last();
            return Ok(last.map_or(header.first_offset, |(at, _, bytes)| {
                at + bytes.len() as u64
            }));
        }
        Ok(0)
    }

    /// The last block that begins at or before the offset. A damaged block counts as beginning where
    /// the next good one does.
    fn block_of(&self, offset: u64, blocks: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, blocks);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.first_offset(middle, high)? {
                Some(first) if first <= offset => low = middle,
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }

    fn first_offset(&self, from: u64, to: u64) -> io::Result<Option<u64>> {
        for index in from..to {
            let mut bytes = [0; BLOCK_HEADER];
            read_up_to(self.0, &mut bytes, block_position(index))?;
            if let Some(header) = BlockHeader::decode(&bytes) {
                return Ok(Some(header.first_offset));
            }
        }
        Ok(None)
    }
}

pub(super) fn read_up_to(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn block_header(block: &[u8]) -> Option<BlockHeader> {
    BlockHeader::decode(block.first_chunk()?)
}

/// The frames of a block with their offsets. The last one may have fewer bytes than it says: they
/// are still being written, or never will be.
fn frames(block: &[u8]) -> impl Iterator<Item = (u64, FrameHeader, &[u8])> {
    let mut offset = block_header(block).map(|header| header.first_offset);
    let mut rest = block.get(BLOCK_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let at = offset?;
        let frame = FrameHeader::decode(rest.first_chunk()?)?;
        let body = &rest[FRAME_HEADER..];
        let bytes = &body[..body.len().min(frame.len as usize)];
        rest = &body[bytes.len()..];
        offset = Some(at + bytes.len() as u64);
        (!bytes.is_empty()).then_some((at, frame, bytes))
    })
}

/// Adds the part of a frame that lies between `from` and `to`, and within what is left to give.
fn take(
    chunks: &mut Vec<Chunk>,
    from: u64,
    to: u64,
    left: &mut usize,
    at: u64,
    frame: FrameHeader,
    bytes: &[u8],
) {
    let skip = usize::try_from(from.saturating_sub(at))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let until = usize::try_from(to.saturating_sub(at))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let wanted = &bytes[skip.min(until)..until];
    let given = &wanted[..wanted.len().min(*left)];
    if given.is_empty() {
        return;
    }
    *left -= given.len();
    chunks.push(Chunk {
        offset: at + skip as u64,
        stream: match frame.stream {
            Tag::Stdout => Stream::Stdout,
            Tag::Stderr => Stream::Stderr,
        },
        at: Timestamp(frame.time_micros),
        data: given.to_vec(),
    });
}
