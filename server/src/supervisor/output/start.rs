//! The offset that a start stands for.

use std::io;

use super::source::Source;
use crate::task::{Chunk, Item, Timestamp};

/// Bytes that are searched for line ends at a time.
const WINDOW: u64 = 1 << 20;
/// Bytes that are read to find the time of a place in the output.
const PROBE: usize = 1;
/// Maximum length of a character.
const LONGEST_CHARACTER: usize = 4;

/// The place in the output at which a read starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStart {
    Offset(u64),
    /// This many bytes before the end.
    TailBytes(u64),
    /// This many lines before the end.
    TailLines(u64),
    /// The first byte that was read at this time or later.
    Since(Timestamp),
}

impl OutputStart {
    pub(super) fn offset(self, source: &Source) -> io::Result<u64> {
        match self {
            Self::Offset(offset) => Ok(offset),
            Self::TailBytes(bytes) => Ok(source.stored_end()?.saturating_sub(bytes)),
            Self::TailLines(lines) => tail_lines(source, source.stored_end()?, lines, 0),
            Self::Since(time) => since(source, time),
        }
    }
}

/// The offset of the line that is this many lines before `end`, or `from` if there are fewer behind it. A
/// last line without a line end counts.
pub(super) fn tail_lines(source: &Source, end: u64, lines: u64, from: u64) -> io::Result<u64> {
    let mut left = lines;
    let mut to = end;
    while to > from && left > 0 {
        let window = to.saturating_sub(WINDOW).max(from);
        let items = source.read_range(window, to)?;
        for item in items.iter().rev() {
            let Item::Chunk(chunk) = item else { continue };
            for newline in memchr::memrchr_iter(b'\n', &chunk.data) {
                let line_end = chunk.offset + newline as u64 + 1;
                // The last line end of all ends the last line, and begins none.
                if line_end == end {
                    continue;
                }
                left -= 1;
                if left == 0 {
                    return Ok(line_end);
                }
            }
        }
        to = match items.first() {
            Some(Item::Gap(_)) => before_gap(source, window)?.max(from),
            Some(Item::Chunk(_)) | None => window,
        };
    }
    Ok(match left {
        0 => end,
        _ => from,
    })
}

/// The beginning of the gap that an offset is in: gaps by rule may be larger than anything that can be
/// searched step by step.
fn before_gap(source: &Source, offset: u64) -> io::Result<u64> {
    let gaps = source.gaps()?;
    let around = gaps
        .iter()
        .find(|gap| (gap.offset..gap.end()).contains(&offset));
    Ok(around.map_or(offset, |gap| gap.offset))
}

/// The offset after this many lines, or `to` if there are fewer before it.
pub(super) fn head_lines(source: &Source, lines: u64, to: u64) -> io::Result<u64> {
    let mut left = lines;
    let mut at = 0;
    while at < to && left > 0 {
        let window = at.saturating_add(WINDOW).min(to);
        for item in source.read_range(at, window)? {
            let Item::Chunk(chunk) = item else { continue };
            for newline in memchr::memchr_iter(b'\n', &chunk.data) {
                left -= 1;
                if left == 0 {
                    return Ok(chunk.offset + newline as u64 + 1);
                }
            }
        }
        at = window;
    }
    Ok(match left {
        0 => 0,
        _ => to,
    })
}

/// The first byte that was read at a time or later, by bisection. Where the clock was set back, one of the
/// places that it can be.
fn since(source: &Source, time: Timestamp) -> io::Result<u64> {
    let (mut low, mut high) = (0, source.end()?);
    while low < high {
        let middle = low + (high - low) / 2;
        match chunk_at(source, middle)? {
            Some(chunk) if chunk.at < time => low = chunk.end(),
            Some(_) | None => high = middle,
        }
    }
    Ok(low)
}

/// The first byte at an offset or behind it.
fn chunk_at(source: &Source, offset: u64) -> io::Result<Option<Chunk>> {
    let items = source.read(offset, PROBE)?.items;
    Ok(items.into_iter().find_map(|item| match item {
        Item::Chunk(chunk) => Some(chunk),
        Item::Gap(_) => None,
    }))
}

/// The offset, or the end of the character that it is inside of.
pub(super) fn after_character(source: &Source, offset: u64) -> io::Result<u64> {
    let reach = LONGEST_CHARACTER as u64 - 1;
    let around = source.read_range(offset.saturating_sub(reach), offset.saturating_add(reach))?;
    let chunks = around.iter().filter_map(|item| match item {
        Item::Chunk(chunk) => Some(chunk),
        Item::Gap(_) => None,
    });
    let Some(stream) = (chunks.clone().find(|chunk| chunk.end() > offset)).map(|at| at.stream)
    else {
        return Ok(offset);
    };
    let own = chunks.filter(|chunk| chunk.stream == stream);
    let (ends, bytes): (Vec<u64>, Vec<u8>) = own
        .flat_map(|chunk| (chunk.offset + 1..).zip(chunk.data.iter().copied()))
        .unzip();
    let index = ends.partition_point(|end| *end <= offset);
    let character_end = |start: usize| Some(start + character(&bytes[start..])?);
    let inside = (0..index)
        .filter_map(character_end)
        .find(|end| *end > index);
    Ok(inside.map_or(offset, |end| ends[end - 1]))
}

/// The length of the character that the bytes begin with; `None` if they do not begin with a whole one.
fn character(bytes: &[u8]) -> Option<usize> {
    let longest = bytes.len().min(LONGEST_CHARACTER);
    (1..=longest).find(|len| str::from_utf8(&bytes[..*len]).is_ok())
}
