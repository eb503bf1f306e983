//! Pieces of output, as they were written.

use std::io;

use tokio::task::spawn_blocking;

use super::{
    source::{Extent, Items, Source},
    start::{OutputStart, after_character},
};
use crate::{
    supervisor::Supervisor,
    task::{Chunk, Item, Stream, TaskId},
};

/// Bytes that are read in vain for a stream before other work gets the thread.
const TURN: u64 = 16 << 20;

/// The end of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    /// Line ends; `None`: any number.
    pub(crate) lines: Option<u64>,
}

/// The part of the output to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) start: OutputStart,
    pub(crate) limits: Limits,
    /// Only this stream.
    pub(crate) stream: Option<Stream>,
    /// Bytes before the start that are returned separately.
    pub(crate) lead: u64,
    pub(crate) boundary: Boundary,
}

/// The places at which a read by its distance from the end may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boundary {
    Byte,
    Character,
}

/// A piece of output.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    /// The output before it, as much as was requested.
    pub(crate) lead: Vec<Item>,
    /// The offset at which it starts.
    pub(crate) offset: u64,
    pub(crate) items: Vec<Item>,
    /// The offsets of the lines that begin a group, in their order; `None` unless lines of context are selected.
    pub(crate) groups: Option<Vec<u64>>,
    /// The offset to continue from.
    pub(crate) next: u64,
    /// The amount of output at the time of the read.
    pub(crate) end: u64,
    /// True if nothing is left to read now.
    pub(crate) is_caught_up: bool,
}

impl Supervisor {
    /// Reads a piece of a task's output.
    pub(crate) async fn read_output(
        &self,
        id: &TaskId,
        extent: Extent,
        read: Read,
    ) -> io::Result<Piece> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), id.clone());
        let piece = move || {
            let source = Source::open(&task_dir, &id, extent)?;
            read.piece(&source)
        };
        spawn_blocking(piece).await.map_err(io::Error::other)?
    }

    /// The size of a task's output.
    pub(crate) async fn output_end(&self, id: &TaskId, extent: Extent) -> io::Result<u64> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), id.clone());
        let read = move || Source::open(&task_dir, &id, extent)?.end();
        spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

impl Read {
    fn piece(self, source: &Source) -> io::Result<Piece> {
        let mut offset = self.start.offset(source)?;
        if let (OutputStart::TailBytes(_), Boundary::Character) = (self.start, self.boundary) {
            offset = after_character(source, offset)?;
        }
        let lead = match self.lead {
            0 => Vec::new(),
            bytes => source.read_range(offset.saturating_sub(bytes), offset)?,
        };
        let mut piece = Piece {
            lead,
            offset,
            next: offset,
            ..Piece::default()
        };
        loop {
            let Items { items, end } = source.read(piece.next, self.limits.bytes)?;
            let is_over = items.is_empty();
            piece.end = end;
            piece.take(items, self);
            piece.is_caught_up = is_over || piece.next >= end;
            // Output of the other stream is passed over.
            let wants_more = self.stream.is_some() && piece.items.is_empty();
            if piece.is_caught_up || !wants_more || piece.next - offset >= TURN {
                return Ok(piece);
            }
        }
    }
}

impl Piece {
    fn take(&mut self, items: Vec<Item>, read: Read) {
        let mut lines = read.limits.lines;
        for mut item in items {
            if lines == Some(0) {
                return;
            }
            if let Item::Chunk(chunk) = &mut item {
                if read.stream.is_some_and(|stream| stream != chunk.stream) {
                    self.next = chunk.end();
                    continue;
                }
                lines = lines.map(|lines| cut_after_lines(chunk, lines));
            }
            self.next = item.end();
            self.items.push(item);
        }
    }
}

/// Cuts a chunk after this many line ends; returns the number that is left for the next one.
fn cut_after_lines(chunk: &mut Chunk, lines: u64) -> u64 {
    let mut left = lines;
    for newline in memchr::memchr_iter(b'\n', &chunk.data) {
        left -= 1;
        if left == 0 {
            chunk.data.truncate(newline + 1);
            return 0;
        }
    }
    left
}
