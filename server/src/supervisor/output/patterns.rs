//! The search for the patterns of one task, line by line as its output grows.
//!
//! Lines that were found are kept here until they are recorded with the task. A search that starts again from the
//! recorded state finds the same lines.

use std::{io, ops::ControlFlow};

use super::{
    line_reader::{LineReader, Part, Progress},
    search_threads::{SearchKey, Turn},
    source::{Extent, Source},
};
use crate::{
    output::{
        lines::Line,
        pattern::LinePattern,
        plain::{Stripper, has_controls},
    },
    supervisor::Shared,
    task::{FoundLines, LinePlace, Pattern, Stream, Task},
};

/// The search of one task.
#[derive(Debug)]
pub(in crate::supervisor) struct PatternSearch {
    reader: LineReader,
    patterns: Vec<SearchedPattern>,
    ready: Option<ReadyPattern>,
}

/// The pattern that decides whether the task is ready.
#[derive(Debug)]
struct ReadyPattern {
    expression: Expression,
    /// The begin of the attempt: lines of earlier ones do not count.
    from: u64,
    is_found: bool,
}

#[derive(Debug)]
struct SearchedPattern {
    name: String,
    expression: Expression,
    stream: Option<Stream>,
    /// Lines that end up to here were searched before.
    from: u64,
    found: FoundLines,
}

/// A regular expression, which is compiled in the first turn.
#[derive(Debug)]
enum Expression {
    Text(String),
    Compiled(LinePattern),
    /// One that this server refuses and an earlier one did not. It matches nothing.
    Invalid,
}

/// The state of a search after a turn.
#[derive(Debug, Clone, Copy)]
pub(in crate::supervisor) struct Searched {
    /// True if all output of now was searched.
    pub(in crate::supervisor) is_caught_up: bool,
    /// The amount of output.
    pub(in crate::supervisor) end: u64,
}

impl PatternSearch {
    /// The search for those patterns of a task that can have further events, and for the one that makes it
    /// ready; `None` if there are none.
    pub(in crate::supervisor) fn of(task: &Task) -> Option<Self> {
        let patterns = task.spec.output.patterns.iter().filter_map(|pattern| {
            let matches = task.matches_of(pattern);
            let is_over = matches.events >= pattern.max_events;
            (!is_over).then(|| SearchedPattern::new(pattern, matches.searched))
        });
        let patterns: Vec<_> = patterns.collect();
        let ready = ReadyPattern::of(task);
        // The place up to which a search has found no ready line is not recorded.
        let ready_from = ready.iter().map(|ready| ready.from);
        let from = patterns.iter().map(|pattern| pattern.from);
        let reader = LineReader::new(from.chain(ready_from).min()?, 0);
        Some(Self {
            // An attempt does not continue the line in which the one before it has ended.
            reader: reader.begin_line_at(task.output_begin()),
            patterns,
            ready,
        })
    }

    /// Reports whether a line was found that makes the task ready.
    pub(in crate::supervisor) fn is_ready_found(&self) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.is_found)
    }

    /// Searches no more for the line that makes the task ready.
    pub(in crate::supervisor) fn drop_ready(&mut self) {
        self.ready = None;
    }

    /// Reports whether there is nothing left to search for.
    pub(in crate::supervisor) fn is_over(&self) -> bool {
        self.patterns.is_empty() && self.ready.is_none()
    }

    /// The lines that end up to here were searched.
    pub(in crate::supervisor) fn cursor(&self) -> u64 {
        self.reader.cursor()
    }

    /// The lines of each pattern that were found and are not recorded.
    pub(in crate::supervisor) fn found(&self) -> impl Iterator<Item = (&str, &FoundLines)> {
        let patterns = self.patterns.iter();
        patterns.map(|pattern| (&*pattern.name, &pattern.found))
    }

    /// Takes what was found of a pattern, to record it.
    pub(in crate::supervisor) fn take(&mut self, name: &str) -> FoundLines {
        let pattern = self.patterns.iter_mut().find(|of| of.name == name);
        let found = pattern.map(|pattern| std::mem::take(&mut pattern.found));
        found.unwrap_or_default()
    }

    /// Searches no more for a pattern.
    pub(in crate::supervisor) fn drop_pattern(&mut self, name: &str) {
        self.patterns.retain(|pattern| pattern.name != name);
    }

    /// Begins the next turn of a search.
    pub(in crate::supervisor) fn begin_turn(
        mut self: Box<Self>,
        shared: &Shared,
        task: &Task,
        extent: Extent,
    ) -> Turn<io::Result<(Box<Self>, Searched)>> {
        let (task_dir, id) = (shared.parts.task_dir.clone(), task.id.clone());
        let turn = move || {
            let source = Source::open(&task_dir, &id, extent)?;
            let searched = self.search(&source)?;
            Ok((self, searched))
        };
        shared.search_threads.begin(SearchKey::Task(task.seq), turn)
    }

    fn search(&mut self, source: &Source) -> io::Result<Searched> {
        let Self {
            reader,
            patterns,
            ready,
        } = self;
        for pattern in &mut *patterns {
            pattern.expression.compile();
        }
        if let Some(ready) = ready {
            ready.expression.compile();
        }
        let end = source.end()?;
        let progress = reader.turn(source, &mut |part| {
            match part {
                Part::Line(line) => take_line(patterns, ready.as_mut(), &line),
                Part::Gap(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(Searched {
            is_caught_up: matches!(progress, Progress::CaughtUp { .. }),
            end,
        })
    }
}

fn take_line(patterns: &mut [SearchedPattern], ready: Option<&mut ReadyPattern>, line: &Line<'_>) {
    let stripped = has_controls(line.bytes).then(|| Stripper::default().strip(line.bytes));
    let shown = stripped.as_deref().unwrap_or(line.bytes);
    if let Some(ready) = ready.filter(|ready| !ready.is_found) {
        let is_wanted = line.cursor > ready.from;
        ready.is_found = is_wanted && ready.expression.matches(shown);
    }
    for pattern in patterns {
        if pattern.matches(line, shown) {
            pattern.found.add(LinePlace {
                offset: line.offset,
                end: line.end,
                stream: line.stream,
            });
        }
    }
}

impl SearchedPattern {
    fn new(pattern: &Pattern, from: u64) -> Self {
        Self {
            name: pattern.name.clone(),
            expression: Expression::Text(pattern.regex.clone()),
            stream: pattern.stream,
            from,
            found: FoundLines::default(),
        }
    }

    fn matches(&self, line: &Line<'_>, shown: &[u8]) -> bool {
        let is_wanted =
            line.cursor > self.from && self.stream.is_none_or(|stream| stream == line.stream);
        is_wanted && self.expression.matches(shown)
    }
}

impl ReadyPattern {
    /// The pattern of a task that is not ready.
    fn of(task: &Task) -> Option<Self> {
        let ready = task.spec.ready.as_ref().filter(|_| task.ready.is_none());
        let pattern = ready?.pattern()?;
        Some(Self {
            expression: Expression::Text(pattern.to_owned()),
            from: task.output_begin(),
            is_found: false,
        })
    }
}

impl Expression {
    fn matches(&self, shown: &[u8]) -> bool {
        match self {
            Self::Compiled(pattern) => pattern.matches(shown),
            Self::Text(_) | Self::Invalid => false,
        }
    }

    fn compile(&mut self) {
        if let Self::Text(text) = self {
            *self = match LinePattern::compile(text) {
                Ok(pattern) => Self::Compiled(pattern),
                Err(error) => {
                    tracing::warn!(expression = text, %error, "a recorded pattern");
                    Self::Invalid
                }
            };
        }
    }
}
