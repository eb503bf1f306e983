//! The lines that a filter selects, with lines of context around them.

use std::{collections::VecDeque, sync::Arc};

use super::{
    lines::Line,
    pattern::LinePattern,
    plain::{Stripper, has_controls},
};
use crate::task::{Chunk, Stream};

/// A selection of lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct LineFilter {
    /// Only this stream.
    pub(crate) stream: Option<Stream>,
    /// Selects the lines that match.
    pub(crate) include: Option<LinePattern>,
    /// Drops the lines that match, as if they had not been written.
    pub(crate) exclude: Option<LinePattern>,
    /// Lines of context before and after each selected line.
    pub(crate) before: usize,
    pub(crate) after: usize,
    pub(crate) escapes: Escapes,
}

/// The treatment of terminal escape sequences before a line is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Escapes {
    #[default]
    Kept,
    Removed,
}

/// A selected line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selected {
    /// The cursor at which the line ended.
    pub(crate) cursor: u64,
    pub(crate) line: Chunk,
    /// The line before it was left out.
    pub(crate) begins_group: bool,
}

/// The state of a selection.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    filter: Arc<LineFilter>,
    /// The number of lines that are selected as context of an earlier one.
    owed: usize,
    /// The latest lines that were not selected: context of the next one.
    held: VecDeque<Selected>,
    /// A line was left out since the latest selected one.
    has_left_out: bool,
}

impl LineFilter {
    /// Reports whether lines of context are selected.
    pub(crate) fn has_context(&self) -> bool {
        self.before > 0 || self.after > 0
    }

    /// Reports whether the line is considered at all.
    fn admits(&self, line: &Line<'_>, shown: &[u8]) -> bool {
        let is_of_stream = self.stream.is_none_or(|stream| stream == line.stream);
        let is_excluded = || match &self.exclude {
            Some(pattern) => pattern.matches(shown),
            None => false,
        };
        is_of_stream && !is_excluded()
    }
}

impl Selector {
    pub(crate) fn new(filter: Arc<LineFilter>) -> Self {
        Self {
            filter,
            owed: 0,
            held: VecDeque::new(),
            has_left_out: false,
        }
    }

    /// Reports whether lines of context are selected.
    pub(crate) fn has_context(&self) -> bool {
        self.filter.has_context()
    }

    /// Takes the next line, and adds the lines that are selected now.
    pub(crate) fn take(&mut self, line: Line<'_>, selected: &mut Vec<Selected>) {
        let filter = &self.filter;
        let stripped = match filter.escapes {
            Escapes::Removed if has_controls(line.bytes) => {
                Some(Stripper::default().strip(line.bytes))
            }
            Escapes::Removed | Escapes::Kept => None,
        };
        let shown = stripped.as_deref().unwrap_or(line.bytes);
        if !filter.admits(&line, shown) {
            return;
        }
        let include = filter.include.as_ref();
        if include.is_none_or(|pattern| pattern.matches(shown)) {
            let first = selected.len();
            selected.extend(self.held.drain(..));
            selected.push(Selected::from(line));
            selected[first].begins_group = std::mem::take(&mut self.has_left_out);
            self.owed = filter.after;
        } else if self.owed > 0 {
            self.owed -= 1;
            selected.push(Selected::from(line));
        } else if filter.before == 0 {
            self.has_left_out = true;
        } else {
            if self.held.len() == filter.before {
                self.held.pop_front();
                self.has_left_out = true;
            }
            self.held.push_back(Selected::from(line));
        }
    }

    /// Forgets the lines that could become context.
    pub(crate) fn forget_held(&mut self) {
        self.has_left_out |= !self.held.is_empty();
        self.held.clear();
    }

    /// The cursor to continue from, of a reader that forgets the lines that could become context.
    pub(crate) fn resume_at(&self, cursor: u64) -> u64 {
        let first = self.held.front();
        first.map_or(cursor, |held| held.cursor - 1)
    }

    /// The size of the lines that could become context.
    pub(crate) fn size(&self) -> usize {
        self.held.iter().map(|held| held.line.data.len()).sum()
    }
}

impl From<Line<'_>> for Selected {
    fn from(line: Line<'_>) -> Self {
        Self {
            cursor: line.cursor,
            line: Chunk {
                offset: line.offset,
                stream: line.stream,
                at: line.at,
                data: line.bytes.to_vec(),
            },
            begins_group: false,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::task::Timestamp;

    fn pattern(expression: &str) -> Option<LinePattern> {
        Some(LinePattern::compile(expression).unwrap())
    }

    /// The numbers of the lines `0` to `9`, with a `!` in each third, that a filter selects.
    fn selected(filter: LineFilter) -> Vec<u64> {
        let lines = lines(filter);
        lines.iter().map(|line| line.line.offset).collect()
    }

    /// The numbers of those that begin a group.
    fn groups(filter: LineFilter) -> Vec<u64> {
        let lines = lines(filter).into_iter().filter(|line| line.begins_group);
        lines.map(|line| line.line.offset).collect()
    }

    fn lines(filter: LineFilter) -> Vec<Selected> {
        let mut selector = Selector::new(Arc::new(filter));
        let mut selected = Vec::new();
        for number in 0..10 {
            let mark = if number % 3 == 0 { "!" } else { "" };
            let text = format!("\x1b[1m{number}\x1b[m{mark}\n");
            let line = Line {
                offset: number,
                end: number + 1,
                cursor: number + 1,
                stream: match number {
                    8 => Stream::Stderr,
                    _ => Stream::Stdout,
                },
                at: Timestamp(0),
                bytes: text.as_bytes(),
            };
            selector.take(line, &mut selected);
        }
        selected
    }

    /// O12: as grep separates them.
    #[test]
    fn a_group_begins_where_lines_are_left_out_that_the_filter_admits() {
        let context = |expression: &str, before, after| LineFilter {
            include: pattern(expression),
            before,
            after,
            ..LineFilter::default()
        };
        assert_eq!(groups(context("[038]", 1, 1)), [7]);
        assert_eq!(groups(context("[25]", 1, 1)), [1]);
        assert_eq!(groups(context("[26]", 1, 1)), [1, 5]);
        assert_eq!(groups(context("[26]", 0, 3)), [2]);
        assert_eq!(groups(context("[27]", 0, 3)), [2, 7]);
        let without = LineFilter {
            exclude: pattern("!"),
            ..context("[27]", 1, 1)
        };
        assert_eq!(selected(without.clone()), [1, 2, 4, 5, 7, 8]);
        assert_eq!(groups(without), [] as [u64; 0]);
    }

    /// O12
    #[test]
    fn included_lines_come_with_their_context_and_excluded_ones_do_not_exist() {
        let filter = || LineFilter {
            include: pattern("4"),
            ..LineFilter::default()
        };
        assert_eq!(selected(filter()), [4]);
        let context = || LineFilter {
            before: 2,
            after: 3,
            ..filter()
        };
        assert_eq!(selected(context()), [2, 3, 4, 5, 6, 7]);
        let without = LineFilter {
            exclude: pattern("!"),
            ..context()
        };
        assert_eq!(selected(without), [1, 2, 4, 5, 7, 8]);
        let overlapping = LineFilter {
            include: pattern("[35]"),
            before: 1,
            after: 1,
            ..LineFilter::default()
        };
        assert_eq!(selected(overlapping), [2, 3, 4, 5, 6]);
    }

    /// O12
    #[test]
    fn one_stream_is_selected_and_escape_sequences_are_removed_on_request() {
        let stderr = LineFilter {
            stream: Some(Stream::Stderr),
            ..LineFilter::default()
        };
        assert_eq!(selected(stderr), [8]);
        let plain = |escapes| LineFilter {
            include: pattern("^3!$"),
            escapes,
            ..LineFilter::default()
        };
        assert_eq!(selected(plain(Escapes::Removed)), [3]);
        assert_eq!(selected(plain(Escapes::Kept)), [] as [u64; 0]);
    }
}
