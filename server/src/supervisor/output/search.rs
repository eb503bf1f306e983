//! The lines of a task's output that a filter selects.

use std::{collections::VecDeque, io, ops::ControlFlow, sync::Arc};

use super::{
    line_reader::{LineReader, Part, Progress},
    read::{Limits, Piece},
    search_threads::SearchKey,
    source::{Extent, Source},
    start::OutputStart,
};
use crate::{
    output::select::{LineFilter, Selected, Selector},
    supervisor::Supervisor,
    task::{Item, TaskId},
};

/// The size of output before the start that is searched for lines whose context follows, or whose group goes on.
const CONTEXT: u64 = 1 << 20;
/// The size of the end of the output that is searched first for the last lines; four times as much the
/// next time.
const FIRST_WINDOW: u64 = 1 << 20;
/// Open lines and context above this size are not kept between two pieces, but read again.
const KEPT: usize = 4096;

/// A search, which continues piece by piece.
#[derive(Debug)]
pub(crate) struct Search {
    filter: Arc<LineFilter>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    Start(OutputStart),
    /// Looks for the place from which on this many lines are selected.
    Tail(TailSearch),
    Reading(LineSearch),
}

#[derive(Debug)]
struct TailSearch {
    lines: usize,
    window: u64,
    end: u64,
    search: LineSearch,
    /// The cursors of the latest selected lines.
    latest: VecDeque<u64>,
}

#[derive(Debug)]
struct LineSearch {
    reader: LineReader,
    selector: Selector,
}

impl Search {
    pub(crate) fn new(filter: Arc<LineFilter>, start: OutputStart) -> Self {
        Self {
            filter,
            stage: Stage::Start(start),
        }
    }

    /// Drops what is costly to keep until the next piece, and can be read again.
    pub(crate) fn shrink(&mut self) {
        if let Stage::Reading(search) = &self.stage
            && search.reader.size() + search.selector.size() > KEPT
        {
            let cursor = search.selector.resume_at(search.reader.cursor());
            self.stage = Stage::Reading(LineSearch::new(&self.filter, cursor));
        }
    }

    /// Searches for one turn; returns nothing while it looks for its start.
    fn turn(&mut self, source: &Source, limits: Limits) -> io::Result<Option<Piece>> {
        loop {
            match &mut self.stage {
                Stage::Start(OutputStart::TailLines(lines)) => {
                    let lines = usize::try_from(*lines).unwrap_or(usize::MAX);
                    let tail = TailSearch::new(&self.filter, source.end()?, lines, FIRST_WINDOW);
                    self.stage = Stage::Tail(tail);
                }
                Stage::Start(start) => {
                    let cursor = start.offset(source)?;
                    self.stage = Stage::Reading(LineSearch::new(&self.filter, cursor));
                }
                Stage::Tail(tail) => match tail.turn(source, &self.filter)? {
                    Some(cursor) => {
                        self.stage = Stage::Reading(LineSearch::new(&self.filter, cursor));
                    }
                    None => return Ok(None),
                },
                Stage::Reading(search) => return search.turn(source, limits).map(Some),
            }
        }
    }
}

impl LineSearch {
    fn new(filter: &Arc<LineFilter>, cursor: u64) -> Self {
        let look_back = match filter.has_context() {
            false => 0,
            true => CONTEXT,
        };
        Self {
            reader: LineReader::new(cursor, look_back),
            selector: Selector::new(Arc::clone(filter)),
        }
    }

    fn turn(&mut self, source: &Source, limits: Limits) -> io::Result<Piece> {
        let offset = self.reader.cursor();
        let (mut items, mut bytes, mut lines) = (Vec::new(), 0, 0);
        let mut groups = self.selector.has_context().then(Vec::new);
        let progress = self.pass(source, |part| match part {
            Passed::Selected(selected) => {
                bytes += selected.line.data.len();
                lines += u64::from(selected.line.data.ends_with(b"\n"));
                if let Some(groups) = groups.as_mut().filter(|_| selected.begins_group) {
                    groups.push(selected.line.offset);
                }
                items.push(Item::Chunk(selected.line));
                match bytes >= limits.bytes || limits.lines.is_some_and(|most| lines >= most) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            }
            Passed::Gap(gap) => {
                items.push(gap);
                ControlFlow::Continue(())
            }
        })?;
        // Output that is written from here on is to be waited for.
        let (is_caught_up, end) = match progress {
            Progress::CaughtUp { end } => (true, end),
            Progress::More => (false, source.end()?),
        };
        let next = match is_caught_up && source.is_complete() {
            // No line follows that the last ones could be context of.
            true => self.reader.cursor(),
            false => self.selector.resume_at(self.reader.cursor()),
        };
        Ok(Piece {
            lead: Vec::new(),
            offset,
            items,
            groups,
            next,
            end,
            is_caught_up,
        })
    }

    /// Passes the selected lines of one turn, and the gaps between them.
    fn pass(
        &mut self,
        source: &Source,
        mut pass: impl FnMut(Passed) -> ControlFlow<()>,
    ) -> io::Result<Progress> {
        let Self { reader, selector } = self;
        let mut selected = Vec::new();
        if !reader.is_ready() {
            // The context of an earlier line may be after the start; no line before it is returned.
            reader.look_back(source, |line| selector.take(line, &mut selected))?;
            selected.clear();
            selector.forget_held();
        }
        reader.turn(source, &mut |part| match part {
            Part::Line(line) => {
                selector.take(line, &mut selected);
                let mut flow = ControlFlow::Continue(());
                for selected in selected.drain(..) {
                    if pass(Passed::Selected(selected)).is_break() {
                        flow = ControlFlow::Break(());
                    }
                }
                flow
            }
            Part::Gap(gap) => {
                // A reader that continued from a line before the gap would get the gap again.
                selector.forget_held();
                pass(Passed::Gap(Item::Gap(gap)))
            }
        })
    }
}

/// A part of the output that a search passes on.
enum Passed {
    Selected(Selected),
    Gap(Item),
}

impl TailSearch {
    fn new(filter: &Arc<LineFilter>, end: u64, lines: usize, window: u64) -> Self {
        Self {
            lines,
            window,
            end,
            search: LineSearch::new(filter, end.saturating_sub(window)),
            latest: VecDeque::new(),
        }
    }

    /// Searches for one turn; returns the cursor after which the last lines end, once it is known.
    fn turn(&mut self, source: &Source, filter: &Arc<LineFilter>) -> io::Result<Option<u64>> {
        let Self {
            lines,
            window,
            end,
            search,
            latest,
        } = self;
        if *lines == 0 {
            return Ok(Some(*end));
        }
        let is_past_end = |cursor: u64| cursor > *end + 1;
        let progress = search.pass(source, |part| {
            let Passed::Selected(selected) = part else {
                return ControlFlow::Continue(());
            };
            if is_past_end(selected.cursor) {
                return ControlFlow::Break(());
            }
            if latest.len() == *lines {
                latest.pop_front();
            }
            latest.push_back(selected.cursor);
            ControlFlow::Continue(())
        })?;
        if progress == Progress::More && search.reader.cursor() <= *end {
            return Ok(None);
        }
        let has_all = latest.len() == *lines || *window >= *end;
        if !has_all {
            *self = Self::new(filter, *end, *lines, window.saturating_mul(4));
            return Ok(None);
        }
        let first = latest.front();
        Ok(Some(first.map_or(*end, |cursor| cursor - 1)))
    }
}

impl Supervisor {
    /// Continues a search for one turn. Returns no piece while the search looks for its start.
    pub(crate) async fn search(
        &self,
        id: &TaskId,
        extent: Extent,
        mut search: Search,
        limits: Limits,
        key: SearchKey,
    ) -> io::Result<(Search, Option<Piece>)> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), id.clone());
        let turn = move || {
            let source = Source::open(&task_dir, &id, extent)?;
            let piece = search.turn(&source, limits)?;
            Ok((search, piece))
        };
        self.shared.search_threads.run(key, turn).await?
    }
}
