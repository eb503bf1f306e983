//! The output part of a task file or a memory file.

use std::{fs::File, io, os::unix::fs::FileExt};

use heeler_shim::log::{
    BLOCK_HEADER, BLOCK_SIZE, BLOCKS_START, BlockHeader, FRAME_HEADER, FrameHeader,
    Stream as ShimStream, block_position,
};

use super::{LastOutput, Reading};
use crate::task::{Chunk, Moment, Stream, Tail};

/// A file with output.
pub(super) struct Output<'a>(pub(super) &'a File);

/// A frame, the offset of its first byte, and its bytes.
type Frame<'a> = (u64, FrameHeader, &'a [u8]);

impl Output<'_> {
    /// Reads up to `limit` bytes of output from `offset` on.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        // In this order, so that every byte before the end is in one of the blocks.
        let end = self.last()?.end;
        let blocks = self.blocks()?;
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
            for frame in frames(&buffer[..read]) {
                if let Some(chunk) = cut(frame, offset, end, left) {
                    left -= chunk.data.len();
                    reading.chunks.push(chunk);
                }
            }
        }
        Ok(reading)
    }

    /// Reads the last `limit` bytes of output.
    pub(super) fn tail(&self, limit: usize) -> io::Result<Tail> {
        let end = self.last()?.end;
        let reading = self.read(end.saturating_sub(limit as u64), limit)?;
        Ok(Tail {
            chunks: reading.chunks,
            end: reading.end,
        })
    }

    /// Finds the last output: the end in the last readable block, the time in the last one with a frame.
    pub(super) fn last(&self) -> io::Result<LastOutput> {
        let mut end = None;
        let mut buffer = Vec::new();
        for index in (0..self.blocks()?).rev() {
            buffer.resize(BLOCK_SIZE, 0);
            let read = read_up_to(self.0, &mut buffer, block_position(index))?;
            let Some(header) = block_header(&buffer[..read]) else {
                continue;
            };
            if let Some((at, frame, bytes)) = frames(&buffer[..read]).last() {
                return Ok(LastOutput {
                    at: Some(Moment::from(frame.time)),
                    end: end.unwrap_or(at + bytes.len() as u64),
                });
            }
            end = end.or(Some(header.first_offset));
        }
        Ok(LastOutput {
            at: None,
            end: end.unwrap_or(0),
        })
    }

    /// The number of blocks that have begun.
    fn blocks(&self) -> io::Result<u64> {
        let size = self.0.metadata()?.len();
        Ok(size
            .saturating_sub(BLOCKS_START)
            .div_ceil(BLOCK_SIZE as u64))
    }

    /// Finds the last block that begins at or before the offset. A damaged block counts as beginning where
    /// the next readable one does.
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

/// Iterates over the frames of a block. The last one may have fewer bytes than its header says: they are
/// still being written, or never will be.
fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut offset = block_header(block).map(|header| header.first_offset);
    let mut rest = block.get(BLOCK_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let at = offset?;
        let frame = FrameHeader::decode(rest.first_chunk()?)?;
        let body = &rest[FRAME_HEADER..];
        let bytes = &body[..body.len().min(frame.len as usize)];
        rest = &body[bytes.len()..];
        // A task can write its own file: a block may claim to begin at the end of all numbers.
        offset = Some(at.checked_add(bytes.len() as u64)?);
        (!bytes.is_empty()).then_some((at, frame, bytes))
    })
}

/// Cuts a frame to the part between `from` and `to`, and to `limit` bytes; `None` if nothing is left.
fn cut((at, frame, bytes): Frame<'_>, from: u64, to: u64, limit: usize) -> Option<Chunk> {
    let index = |offset: u64| {
        let index = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        index.min(bytes.len())
    };
    let (skip, until) = (index(from), index(to));
    let wanted = &bytes[skip.min(until)..until];
    let data = &wanted[..wanted.len().min(limit)];
    (!data.is_empty()).then(|| Chunk {
        offset: at + skip as u64,
        stream: match frame.stream {
            ShimStream::Stdout => Stream::Stdout,
            ShimStream::Stderr => Stream::Stderr,
        },
        at: Moment::from(frame.time).wall,
        data: data.to_vec(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::io::Write;

    use heeler_shim::{layout::Tail as Layout, stamp::Stamp};

    use super::*;
    use crate::task::{Monotonic, Timestamp};

    fn stamp(micros: u64) -> Stamp {
        Stamp {
            wall_micros: 1000 + micros,
            monotonic_micros: micros,
        }
    }

    fn write(file: &mut File, layout: &mut Layout, micros: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let piece = layout.piece(ShimStream::Stdout, stamp(micros), bytes.len());
            let (now, later) = bytes.split_at(piece.output());
            file.write_all(piece.head().as_bytes()).unwrap();
            file.write_all(now).unwrap();
            *layout = layout.advance(&piece);
            bytes = later;
        }
    }

    /// T6
    #[test]
    fn the_last_output_has_the_time_of_its_frame_by_both_clocks() {
        let mut file = tempfile::tempfile().unwrap();
        assert_eq!(Output(&file).last().unwrap(), LastOutput::default());
        file.write_all(&vec![0; BLOCKS_START as usize]).unwrap();
        let mut layout = Layout::EMPTY;
        for (micros, len) in [(1, 5), (2, 200_000), (3, 1), (4, BLOCK_SIZE)] {
            write(&mut file, &mut layout, micros, &vec![b'x'; len]);
            let last = Output(&file).last().unwrap();
            assert_eq!(last.end, layout.offset());
            let at = last.at.unwrap();
            assert_eq!(at.mono, Monotonic(micros));
            assert_eq!(at.wall, Timestamp(1000 + micros));
        }
    }

    /// R4
    #[test]
    fn a_block_that_claims_to_begin_at_the_end_of_all_numbers_has_no_frame() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; BLOCKS_START as usize]).unwrap();
        write(&mut file, &mut { Layout::EMPTY }, 1, b"output");
        let first_offset = u64::MAX - 3;
        let header = BlockHeader { first_offset };
        file.write_all_at(&header.encode(), BLOCKS_START).unwrap();
        let output = Output(&file);
        assert_eq!(output.last().unwrap().end, first_offset);
        assert_eq!(output.read(0, 10).unwrap().chunks, []);
        assert_eq!(output.tail(10).unwrap().chunks, []);
    }

    /// T6: the shim was killed after it had begun a block.
    #[test]
    fn a_block_without_a_frame_does_not_hide_the_last_time() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![0; BLOCKS_START as usize]).unwrap();
        let mut layout = Layout::EMPTY;
        let full = BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER;
        write(&mut file, &mut layout, 7, &vec![b'x'; full]);
        let first_offset = layout.offset();
        let header = BlockHeader { first_offset };
        file.write_all(&header.encode()).unwrap();
        let last = Output(&file).last().unwrap();
        assert_eq!(last.end, full as u64);
        assert_eq!(last.at.unwrap().mono, Monotonic(7));
    }
}
