//! The search for the patterns of one task, line by line as its output grows.
//!
//! What it has found is kept here until it is recorded with the task. A search that starts again from the
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
    /// The search for those patterns of a task that can have further events; `None` if there are none.
    pub(in crate::supervisor) fn of(task: &Task) -> Option<Self> {
        let patterns = task.spec.output.patterns.iter().filter_map(|pattern| {
            let matches = task.matches_of(pattern);
            let is_over = matches.events >= pattern.max_events;
            (!is_over).then(|| SearchedPattern::new(pattern, matches.searched))
        });
        let patterns: Vec<_> = patterns.collect();
        let from = patterns.iter().map(|pattern| pattern.from).min()?;
        Some(Self {
            reader: LineReader::new(from, 0),
            patterns,
        })
    }

    /// The lines that end up to here were searched.
    pub(in crate::supervisor) fn cursor(&self) -> u64 {
        self.reader.cursor()
    }

    /// What was found of each pattern and is not recorded.
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

    /// Searches no more for a pattern; returns whether any is left.
    pub(in crate::supervisor) fn drop_pattern(&mut self, name: &str) -> bool {
        self.patterns.retain(|pattern| pattern.name != name);
        !self.patterns.is_empty()
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
        let Self { reader, patterns } = self;
        for pattern in &mut *patterns {
            pattern.expression.compile();
        }
        let end = source.end()?;
        let progress = reader.turn(source, &mut |part| {
            match part {
                Part::Line(line) => take_line(patterns, &line),
                Part::Gap(_) => {}
            }
            ControlFlow::Continue(())
        })?;
        Ok(Searched {
            is_caught_up: progress == Progress::CaughtUp,
            end,
        })
    }
}

fn take_line(patterns: &mut [SearchedPattern], line: &Line<'_>) {
    let stripped = has_controls(line.bytes).then(|| Stripper::default().strip(line.bytes));
    let shown = stripped.as_deref().unwrap_or(line.bytes);
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
        match &self.expression {
            Expression::Compiled(pattern) => is_wanted && pattern.matches(shown),
            Expression::Text(_) | Expression::Invalid => false,
        }
    }
}

impl Expression {
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
