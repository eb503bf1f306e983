//! The output part of a task file or a memory file.

mod blocks;
mod frames;
#[cfg(any(test, feature = "fuzz"))]
pub(super) mod model;

use std::{fs::File, io, os::unix::fs::FileExt};

use heeler_shim::{
    log::BLOCK_SIZE,
    record::{OutputState, SLOT, position},
};

use self::{
    blocks::{Blocks, ReadBlock},
    frames::{block_header, cut, frames},
};
use super::{LastOutput, Reading, records::Slot};
use crate::task::{Gap, GapCause, Item, Moment, Tail};

/// The attempts to read blocks that a shim overwrites meanwhile. Each one after the first gives up some of
/// the oldest, which the shim overwrites next.
const ATTEMPTS: u64 = 16;
const SKIPPED: u64 = 4;

/// The attempt of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Early,
    /// A block that looks newer than the end is damaged.
    Last,
}

/// A file with output, and the task file with its records.
pub(super) struct Output<'a> {
    pub(super) blocks: &'a File,
    pub(super) records: &'a File,
}

/// The end of the output.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    /// The offset behind the last byte in the file.
    stored: u64,
    /// The offset behind the last byte that was written, dropped ones included.
    total: u64,
    at: Option<Moment>,
}

impl Output<'_> {
    /// Reads up to `limit` bytes of output from `offset` on.
    pub(super) fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        self.stable(|blocks, state, attempt| {
            // The end first, so that every byte before it is in one of the blocks.
            let end = end(blocks, state)?;
            Cursor::at(offset, end, blocks, state)?.read(blocks, limit, attempt)
        })
    }

    /// Reads the last `limit` bytes in the file, and what follows them.
    pub(super) fn tail(&self, limit: usize) -> io::Result<Tail> {
        self.stable(|blocks, state, attempt| {
            let end = end(blocks, state)?;
            let from = end.stored.saturating_sub(limit as u64);
            let reading = Cursor::at(from, end, blocks, state)?.read(blocks, limit, attempt)?;
            Ok(reading.map(|Reading { items, end }| Tail { items, end }))
        })
    }

    /// Finds the last output, dropped bytes included.
    pub(super) fn last(&self) -> io::Result<LastOutput> {
        self.stable(|blocks, state, _| {
            let End { total, at, .. } = end(blocks, state)?;
            let dropped = (state.dropped > 0).then(|| Moment::from(state.last_dropped));
            Ok(Some(LastOutput {
                at: dropped.or(at),
                end: total,
            }))
        })
    }

    /// The offset behind the last byte in the file.
    pub(super) fn stored_end(&self) -> io::Result<u64> {
        self.stable(|blocks, state, _| Ok(Some(end(blocks, state)?.stored)))
    }

    /// The output that is missing by rule.
    pub(super) fn gaps(&self) -> io::Result<Vec<Gap>> {
        self.stable(|blocks, state, _| {
            let end = end(blocks, state)?;
            let kept = head_end(blocks)?;
            let mut cursor = Cursor::at(kept, end, blocks, state)?;
            cursor.skip_to(cursor.rotated.min(end.stored));
            cursor.at = cursor.at.max(end.stored);
            cursor.skip_to(end.total);
            Ok(Some(cursor.gaps()))
        })
    }

    /// Repeats a read until the shim has not changed the blocks that it used.
    fn stable<T>(
        &self,
        read: impl Fn(&Blocks<'_>, &OutputState, Attempt) -> io::Result<Option<T>>,
    ) -> io::Result<T> {
        for number in 1..=ATTEMPTS {
            let state = self.state()?;
            let blocks = Blocks::new(self.blocks, &state, (number - 1) * SKIPPED)?;
            let attempt = match number {
                ATTEMPTS => Attempt::Last,
                _ => Attempt::Early,
            };
            if let Some(result) = read(&blocks, &state, attempt)?
                && self.state()?.ring == state.ring
            {
                return Ok(result);
            }
        }
        let problem = "the output is overwritten faster than it can be read";
        Err(io::Error::new(io::ErrorKind::ResourceBusy, problem))
    }

    fn state(&self) -> io::Result<OutputState> {
        let mut bytes = [0; 2 * SLOT];
        read_up_to(self.records, &mut bytes, position::OUTPUT[0])?;
        Ok(Slot::of_output(&bytes).whole().unwrap_or_default())
    }
}

/// Finds the end: the offset in the last readable block, the time in the last one with a frame.
fn end(blocks: &Blocks<'_>, state: &OutputState) -> io::Result<End> {
    let mut stored = None;
    let mut at = None;
    let mut buffer = Vec::new();
    for index in (0..blocks.count()).rev() {
        buffer.resize(BLOCK_SIZE, 0);
        let ReadBlock::Whole(block) = blocks.read(index, &mut buffer)? else {
            continue;
        };
        let last = frames(block).last();
        let first = block_header(block).map(|header| header.first_offset);
        let end = last.map(|(at, _, bytes)| at + bytes.len() as u64).or(first);
        stored = stored.or(end);
        if let Some((_, frame, _)) = last {
            at = Some(Moment::from(frame.time));
            break;
        }
    }
    let stored = stored.unwrap_or(0);
    Ok(End {
        stored,
        total: stored.saturating_add(state.dropped),
        at,
    })
}

/// The offset of the head's end.
fn head_end(blocks: &Blocks<'_>) -> io::Result<u64> {
    let mut buffer = vec![0; BLOCK_SIZE];
    let Some(last) = blocks.head().checked_sub(1) else {
        return Ok(0);
    };
    Ok(match blocks.read(last, &mut buffer)? {
        ReadBlock::Whole(block) => {
            let end = frames(block)
                .last()
                .map(|(at, _, bytes)| at + bytes.len() as u64);
            end.unwrap_or(0)
        }
        ReadBlock::Damaged | ReadBlock::Overwritten => 0,
    })
}

/// A read from an offset on: what it has found, and where it is.
struct Cursor {
    at: u64,
    end: End,
    /// The offset before which missing output was rotated out, and the cause of that.
    rotated: u64,
    cause: GapCause,
    items: Vec<Item>,
}

impl Cursor {
    fn at(offset: u64, end: End, blocks: &Blocks<'_>, state: &OutputState) -> io::Result<Self> {
        let oldest = blocks.first_offset(blocks.head(), blocks.count())?;
        Ok(Self {
            at: offset,
            end,
            rotated: oldest.filter(|_| state.ring.is_some()).unwrap_or(0),
            // A ring without a limit is that of a full disk.
            cause: match state.limit {
                Some(_) => GapCause::Rotated,
                None => GapCause::Lost,
            },
            items: Vec::new(),
        })
    }

    /// Reads up to `limit` bytes; `None` if the shim has overwritten the first block to be read.
    fn read(
        mut self,
        blocks: &Blocks<'_>,
        limit: usize,
        attempt: Attempt,
    ) -> io::Result<Option<Reading>> {
        let mut left = limit;
        let mut buffer = vec![0; BLOCK_SIZE];
        if self.at < self.end.stored {
            for index in blocks.containing(self.at)?..blocks.count() {
                if left == 0 {
                    break;
                }
                let read = match blocks.read(index, &mut buffer)? {
                    ReadBlock::Whole(block) if self.is_newer(block) => match attempt {
                        Attempt::Early => ReadBlock::Overwritten,
                        Attempt::Last => ReadBlock::Damaged,
                    },
                    read @ (ReadBlock::Whole(_) | ReadBlock::Damaged | ReadBlock::Overwritten) => {
                        read
                    }
                };
                match read {
                    ReadBlock::Whole(block) => self.take(block, &mut left),
                    ReadBlock::Damaged => {}
                    ReadBlock::Overwritten if self.items.is_empty() => return Ok(None),
                    ReadBlock::Overwritten => left = 0,
                }
            }
        }
        if left > 0 {
            self.skip_to(self.end.stored);
        }
        if self.at >= self.end.stored && limit > 0 {
            self.skip_to(self.end.total);
        }
        Ok(Some(Reading {
            items: self.items,
            end: self.end.total,
        }))
    }

    /// Reports whether a block has only output from behind the end: the shim has overwritten it since the end was
    /// looked up.
    fn is_newer(&self, block: &[u8]) -> bool {
        let first = frames(block).next();
        first.is_some_and(|(at, ..)| at >= self.end.stored)
    }

    fn take(&mut self, block: &[u8], left: &mut usize) {
        for frame in frames(block) {
            if let Some(chunk) = cut(frame, self.at, self.end.stored, *left) {
                self.skip_to(chunk.offset);
                self.at = chunk.offset + chunk.data.len() as u64;
                *left -= chunk.data.len();
                self.items.push(Item::Chunk(chunk));
            }
        }
    }

    /// Notes the output up to an offset as missing.
    fn skip_to(&mut self, offset: u64) {
        let parts = [
            (self.rotated, self.cause),
            (self.end.stored, GapCause::Lost),
            (self.end.total, GapCause::Truncated),
        ];
        for (until, cause) in parts {
            let until = until.min(offset);
            if until > self.at {
                self.items.push(Item::Gap(Gap {
                    offset: self.at,
                    length: until - self.at,
                    cause,
                    lines: None,
                }));
                self.at = until;
            }
        }
    }

    fn gaps(self) -> Vec<Gap> {
        let gap = |item| match item {
            Item::Gap(gap) => Some(gap),
            Item::Chunk(_) => None,
        };
        self.items.into_iter().filter_map(gap).collect()
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

#[cfg(test)]
mod tests;
