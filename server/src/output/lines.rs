//! The lines of a task's output.
//!
//! Each stream has lines of its own, which the other one may interrupt. A *cursor* counts the bytes of
//! both streams that were processed; a line ends at a cursor. The state at a cursor follows from the
//! [`LOOK_BACK`] bytes before it alone, so a reader can stop at any cursor, forget everything, and
//! continue there without losing or repeating a line.
//!
//! For that, lines are bounded: a line that has begun [`LONGEST`] bytes before the cursor or earlier, of
//! whichever stream, is *long*. What there is of it is returned as a piece, and the rest in further pieces
//! as it is processed. A stream that was silent for that many bytes of the other one begins a new line.

use std::ops::ControlFlow;

use super::plain::incomplete_tail;
use crate::task::{Chunk, Gap, Stream, Timestamp};

/// The size of output that a line can span before it is split.
pub(crate) const LONGEST: u64 = 64 * 1024;
/// The size of output before a cursor that determines the state there.
pub(crate) const LOOK_BACK: u64 = 2 * LONGEST;

/// A line with its line end, a piece of a long line, or a last line without a line end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// The offset of the first byte.
    pub(crate) offset: u64,
    /// The offset after the last byte.
    pub(crate) end: u64,
    /// The cursor at which it ended.
    pub(crate) cursor: u64,
    pub(crate) stream: Stream,
    /// The time at which its first byte was read.
    pub(crate) at: Timestamp,
    pub(crate) bytes: &'a [u8],
}

/// Takes a line; `Break` ends the processing after it.
pub(crate) trait Sink: FnMut(Line<'_>) -> ControlFlow<()> {}

impl<F: FnMut(Line<'_>) -> ControlFlow<()>> Sink for F {}

/// The lines of the output from some cursor on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lines {
    cursor: u64,
    open: [Option<OpenLine>; 2],
    /// [`LONGEST`]; less in tests.
    longest: u64,
}

/// A line that has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OpenLine {
    /// The offset of the line's first byte.
    start: u64,
    /// The offset of the first byte that was not returned.
    offset: u64,
    /// The offset after the last byte.
    end: u64,
    at: Timestamp,
    /// The bytes that were not returned.
    bytes: Vec<u8>,
}

impl Lines {
    /// The lines of output that begins at this offset.
    pub(crate) fn from(offset: u64) -> Self {
        Self {
            cursor: offset,
            open: [None, None],
            longest: LONGEST,
        }
    }

    /// The number of bytes that were processed.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The memory of lines that have not ended.
    pub(crate) fn size(&self) -> usize {
        let size = |open: &OpenLine| open.bytes.len();
        self.open.iter().flatten().map(size).sum()
    }

    /// Processes the next chunk, or a part of it if the sink breaks. At least a byte is processed, so that
    /// the cursor tells which lines were returned.
    pub(crate) fn feed(&mut self, chunk: &Chunk, sink: &mut impl Sink) -> ControlFlow<()> {
        let mut flow = self.end_after_silence(chunk, sink);
        let mut begin = 0;
        for newline in memchr::memchr_iter(b'\n', &chunk.data) {
            let line_end = chunk.offset + newline as u64;
            flow = or(flow, self.split_long(other(chunk.stream), line_end, sink));
            self.cursor = line_end + 1;
            flow = or(flow, self.end_line(chunk, begin..newline + 1, sink));
            flow = or(
                flow,
                self.split_long(other(chunk.stream), self.cursor, sink),
            );
            flow?;
            begin = newline + 1;
        }
        self.cursor = chunk.end();
        self.push(chunk, begin);
        flow = or(flow, self.split_long(chunk.stream, self.cursor, sink));
        or(
            flow,
            self.split_long(other(chunk.stream), self.cursor, sink),
        )
    }

    /// Processes a gap: no line continues behind it.
    pub(crate) fn gap(&mut self, gap: &Gap, sink: &mut impl Sink) -> ControlFlow<()> {
        self.cursor = gap.end();
        self.end_all(sink)
    }

    /// Ends the lines that are open, behind the last byte. The cursor is then past the end, so that they
    /// are not returned again.
    pub(crate) fn finish(&mut self, sink: &mut impl Sink) -> ControlFlow<()> {
        if self.size() == 0 {
            return ControlFlow::Continue(());
        }
        self.cursor += 1;
        self.end_all(sink)
    }

    fn end_all(&mut self, sink: &mut impl Sink) -> ControlFlow<()> {
        let mut open: Vec<_> = [Stream::Stdout, Stream::Stderr]
            .into_iter()
            .filter_map(|stream| Some((stream, self.open[stream as usize].take()?)))
            .filter(|(_, line)| !line.bytes.is_empty())
            .collect();
        open.sort_by_key(|(_, line)| line.end);
        // All of them end at this cursor: none can be left for later.
        let mut flow = ControlFlow::Continue(());
        for (stream, line) in &open {
            flow = or(flow, sink(line.whole(*stream, self.cursor)));
        }
        flow
    }

    /// Ends the open line of a stream that was silent for too long. It is long, and was returned except
    /// for an incomplete character.
    fn end_after_silence(&mut self, chunk: &Chunk, sink: &mut impl Sink) -> ControlFlow<()> {
        let open = &mut self.open[chunk.stream as usize];
        let longest = self.longest;
        let silent = |line: &mut OpenLine| chunk.offset.saturating_sub(line.end) >= longest;
        match open.take_if(silent) {
            Some(line) if !line.bytes.is_empty() => sink(line.whole(chunk.stream, chunk.offset)),
            Some(_) | None => ControlFlow::Continue(()),
        }
    }

    /// Returns the line that ends with this part of the chunk.
    fn end_line(
        &mut self,
        chunk: &Chunk,
        part: std::ops::Range<usize>,
        sink: &mut impl Sink,
    ) -> ControlFlow<()> {
        let offset = chunk.offset + part.start as u64;
        let bytes = &chunk.data[part];
        match self.open[chunk.stream as usize].take() {
            Some(mut line) => {
                line.extend(offset, chunk.at, bytes);
                sink(line.whole(chunk.stream, self.cursor))
            }
            None => sink(Line {
                offset,
                end: self.cursor,
                cursor: self.cursor,
                stream: chunk.stream,
                at: chunk.at,
                bytes,
            }),
        }
    }

    /// Adds the rest of a chunk to the open line.
    fn push(&mut self, chunk: &Chunk, begin: usize) {
        let bytes = &chunk.data[begin..];
        if bytes.is_empty() {
            return;
        }
        let offset = chunk.offset + begin as u64;
        let open = &mut self.open[chunk.stream as usize];
        let line = open.get_or_insert_with(|| OpenLine::new(offset, chunk.at));
        line.extend(offset, chunk.at, bytes);
    }

    /// Returns what there is of an open line, if it is long at this cursor. An incomplete character at its
    /// end stays until the stream has been silent for too long.
    fn split_long(&mut self, stream: Stream, cursor: u64, sink: &mut impl Sink) -> ControlFlow<()> {
        let Some(line) = &mut self.open[stream as usize] else {
            return ControlFlow::Continue(());
        };
        let is_long = cursor.saturating_sub(line.start) > self.longest;
        let is_silent = cursor.saturating_sub(line.end) > self.longest;
        let len = match is_silent {
            true => line.bytes.len(),
            false => line.bytes.len() - incomplete_tail(&line.bytes),
        };
        if !is_long || len == 0 {
            return ControlFlow::Continue(());
        }
        let rest = line.bytes.split_off(len);
        let piece = std::mem::replace(&mut line.bytes, rest);
        let end = line.end - line.bytes.len() as u64;
        let offset = std::mem::replace(&mut line.offset, end);
        sink(Line {
            offset,
            end,
            cursor,
            stream,
            at: line.at,
            bytes: &piece,
        })
    }
}

impl OpenLine {
    fn new(offset: u64, at: Timestamp) -> Self {
        Self {
            start: offset,
            offset,
            end: offset,
            at,
            bytes: Vec::new(),
        }
    }

    fn extend(&mut self, offset: u64, at: Timestamp, bytes: &[u8]) {
        if self.bytes.is_empty() {
            (self.offset, self.at) = (offset, at);
        }
        self.bytes.extend_from_slice(bytes);
        self.end = offset + bytes.len() as u64;
    }

    fn whole(&self, stream: Stream, cursor: u64) -> Line<'_> {
        Line {
            offset: self.offset,
            end: self.end,
            cursor,
            stream,
            at: self.at,
            bytes: &self.bytes,
        }
    }
}

/// Breaks if one of the two does.
fn or(one: ControlFlow<()>, other: ControlFlow<()>) -> ControlFlow<()> {
    one?;
    other
}

fn other(stream: Stream) -> Stream {
    match stream {
        Stream::Stdout => Stream::Stderr,
        Stream::Stderr => Stream::Stdout,
    }
}

#[cfg(test)]
mod tests;
