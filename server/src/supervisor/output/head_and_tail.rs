//! The beginning and the end of a task's output, and the size of what is between them.

use std::io;

use tokio::task::spawn_blocking;

use super::{
    read::{Boundary, Piece},
    source::{Extent, Source},
    start::{after_character, head_lines, tail_lines},
};
use crate::{
    supervisor::Supervisor,
    task::{Gap, GapCause, Item, TaskId},
};

/// Bytes in which line ends are counted at a time.
const WINDOW: u64 = 1 << 20;

/// The two parts, each at most `largest` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeadAndTail {
    pub(crate) head: Part,
    pub(crate) tail: Part,
    pub(crate) largest: u64,
    pub(crate) boundary: Boundary,
}

/// The size of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Bytes(u64),
    Lines(u64),
}

impl Supervisor {
    /// Reads the beginning and the end of a task's output.
    pub(crate) async fn read_head_and_tail(
        &self,
        id: &TaskId,
        extent: Extent,
        view: HeadAndTail,
    ) -> io::Result<Piece> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), id.clone());
        let read = move || {
            let source = Source::open(&task_dir, &id, extent)?;
            view.read(&source)
        };
        spawn_blocking(read).await.map_err(io::Error::other)?
    }
}

impl HeadAndTail {
    fn read(self, source: &Source) -> io::Result<Piece> {
        let end = source.end()?;
        let head_end = match self.head {
            Part::Bytes(bytes) => bytes.min(end),
            Part::Lines(lines) => head_lines(source, lines, self.largest.min(end))?,
        };
        let stored_end = source.stored_end()?;
        let earliest = stored_end.saturating_sub(self.largest);
        let tail_start = match self.tail {
            Part::Bytes(bytes) => stored_end.saturating_sub(bytes),
            Part::Lines(lines) => tail_lines(source, stored_end, lines, earliest)?,
        };
        let (head_end, tail_start) = match self.boundary {
            Boundary::Byte => (head_end, tail_start),
            Boundary::Character => (
                after_character(source, head_end)?,
                after_character(source, tail_start)?,
            ),
        };
        let items = if head_end >= tail_start {
            source.read_range(0, end)?
        } else {
            let mut items = source.read_range(0, head_end)?;
            items.extend(self.omitted(source, head_end, tail_start)?);
            items.extend(source.read_range(tail_start, end)?);
            items
        };
        Ok(Piece {
            lead: Vec::new(),
            offset: 0,
            items,
            groups: None,
            next: end,
            end,
            is_caught_up: true,
        })
    }

    /// The output between the parts: left out, and missing by rule.
    fn omitted(self, source: &Source, from: u64, to: u64) -> io::Result<Vec<Item>> {
        let (mut at, mut items) = (from, Vec::new());
        let leave_out = |items: &mut Vec<Item>, from: u64, to: u64| -> io::Result<()> {
            if from < to {
                items.push(Item::Gap(Gap {
                    offset: from,
                    length: to - from,
                    cause: GapCause::Omitted,
                    lines: self.omitted_lines(source, from, to)?,
                }));
            }
            Ok(())
        };
        for gap in source.gaps()? {
            let (begin, end) = (gap.offset.max(from), gap.end().min(to));
            if begin < end {
                leave_out(&mut items, at, begin)?;
                items.push(Item::Gap(Gap {
                    offset: begin,
                    length: end - begin,
                    ..gap
                }));
                at = end;
            }
        }
        leave_out(&mut items, at, to)?;
        Ok(items)
    }

    /// The number of line ends between two offsets, if a part is measured in lines.
    fn omitted_lines(self, source: &Source, from: u64, to: u64) -> io::Result<Option<u64>> {
        match (self.head, self.tail) {
            (Part::Bytes(_), Part::Bytes(_)) => return Ok(None),
            (Part::Lines(_), _) | (_, Part::Lines(_)) => {}
        }
        let (mut at, mut lines) = (from, 0);
        while at < to {
            let window = at.saturating_add(WINDOW).min(to);
            for item in source.read_range(at, window)? {
                match item {
                    Item::Chunk(chunk) => {
                        lines += memchr::memchr_iter(b'\n', &chunk.data).count() as u64;
                    }
                    Item::Gap(_) => return Ok(None),
                }
            }
            at = window;
        }
        Ok(Some(lines))
    }
}
