//! The lines of a task's output, from its file: a reader that can stop anywhere and continue.

use std::{io, ops::ControlFlow, time::Instant};

use super::{search_threads::TURN, source::Source};
use crate::{
    output::lines::{LOOK_BACK, Line, Lines},
    task::{Gap, Item},
};

/// Bytes that are read at a time.
const STEP: usize = 1 << 20;
/// Bytes that are read in one turn.
const LARGEST_TURN: u64 = 16 << 20;

/// A reader of lines.
#[derive(Debug)]
pub(super) struct LineReader {
    /// `None`: the lines that are open at the cursor have to be looked up.
    lines: Option<Lines>,
    cursor: u64,
    /// The size of output before the cursor that is looked at.
    look_back: u64,
    /// A place at which a line begins: no line that is open there continues.
    begin: u64,
}

/// A part of the output.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part<'a> {
    Line(Line<'a>),
    Gap(Gap),
}

/// The place at which a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// All output up to this offset is read, which was all there was.
    CaughtUp {
        end: u64,
    },
    More,
}

impl LineReader {
    /// Reads lines that end after the cursor. `look_back` bytes before it are read for their lines.
    pub(super) fn new(cursor: u64, look_back: u64) -> Self {
        Self {
            lines: None,
            cursor,
            look_back: look_back.max(LOOK_BACK),
            begin: 0,
        }
    }

    /// Ends the line that is open at this place. A cursor before it is not affected.
    pub(super) fn begin_line_at(self, begin: u64) -> Self {
        Self { begin, ..self }
    }

    pub(super) fn cursor(&self) -> u64 {
        self.lines.as_ref().map_or(self.cursor, Lines::cursor)
    }

    /// Reports whether the lines that are open at the cursor are known.
    pub(super) fn is_ready(&self) -> bool {
        self.lines.is_some()
    }

    /// The memory of open lines.
    pub(super) fn size(&self) -> usize {
        self.lines.as_ref().map_or(0, Lines::size)
    }

    /// Determines the lines that are open at the cursor, unless they are known. `past` takes lines that
    /// ended before it.
    pub(super) fn look_back(
        &mut self,
        source: &Source,
        mut past: impl FnMut(Line<'_>),
    ) -> io::Result<()> {
        // Past the end no line is open: the last one has been returned.
        if self.lines.is_some() || self.cursor > source.end()? {
            return Ok(());
        }
        let from = self.cursor.saturating_sub(self.look_back);
        let from = from.max(self.begin.min(self.cursor));
        let mut lines = Lines::from(from);
        let mut sink = |line: Line<'_>| {
            past(line);
            ControlFlow::Continue(())
        };
        for item in source.read_range(from, self.cursor)? {
            match item {
                Item::Chunk(chunk) => drop(lines.feed(&chunk, &mut sink)),
                Item::Gap(gap) => lines = Lines::from(gap.end()),
            }
        }
        self.lines = Some(lines);
        Ok(())
    }

    /// Reads until `take` breaks, the turn is over, or all output is read.
    pub(super) fn turn(
        &mut self,
        source: &Source,
        take: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
    ) -> io::Result<Progress> {
        let deadline = Instant::now() + TURN;
        self.look_back(source, |_| {})?;
        let cursor = self.cursor;
        let lines = self.lines.get_or_insert_with(|| Lines::from(cursor));
        let begin = lines.cursor();
        let progress = loop {
            let items = source.read(lines.cursor(), STEP)?;
            if items.items.is_empty() {
                if source.is_complete() && lines.cursor() == items.end {
                    let _ = lines.finish(&mut |line| take(Part::Line(line)));
                }
                break Progress::CaughtUp { end: items.end };
            }
            let flow = process(lines, &items.items, deadline, take);
            if flow.is_break() || lines.cursor() - begin >= LARGEST_TURN {
                break Progress::More;
            }
        };
        Ok(progress)
    }
}

fn process(
    lines: &mut Lines,
    items: &[Item],
    deadline: Instant,
    take: &mut impl FnMut(Part<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for item in items {
        let mut sink = |line: Line<'_>| match take(Part::Line(line)) {
            ControlFlow::Continue(()) if Instant::now() < deadline => ControlFlow::Continue(()),
            ControlFlow::Continue(()) | ControlFlow::Break(()) => ControlFlow::Break(()),
        };
        match item {
            Item::Chunk(chunk) => lines.feed(chunk, &mut sink)?,
            Item::Gap(gap) => {
                let ended = lines.gap(gap, &mut sink);
                take(Part::Gap(*gap))?;
                ended?;
            }
        }
    }
    ControlFlow::Continue(())
}
