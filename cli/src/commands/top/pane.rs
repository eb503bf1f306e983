//! The latest output of one task, as lines that are harmless on a terminal.

use std::collections::VecDeque;

use heeler_client::{Chunk, v1::OutputStream};

use crate::render::{gap, text};

/// The most lines that are kept.
const MOST_LINES: usize = 2000;
/// The most bytes of a line; a longer one is shown as several.
const LONGEST_LINE: usize = 4096;

/// The origin of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Stdout,
    Stderr,
    /// A note about output that is missing.
    Gap,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PaneLine {
    pub(super) text: String,
    pub(super) source: Source,
}

#[derive(Debug, Default)]
pub(super) struct Pane {
    lines: VecDeque<PaneLine>,
    /// The last line, whose end has not arrived.
    partial: Vec<u8>,
    partial_stream: OutputStream,
    /// The number of lines below the last one shown; 0 follows the output.
    below: usize,
}

impl Pane {
    pub(super) fn push(&mut self, chunk: &Chunk) {
        if let Some(missing) = &chunk.gap {
            self.end_line();
            let text = gap::clause(chunk.offset, missing);
            self.add(PaneLine {
                text,
                source: Source::Gap,
            });
            return;
        }
        if chunk.stream != self.partial_stream {
            self.end_line();
            self.partial_stream = chunk.stream;
        }
        for piece in chunk.data.split_inclusive(|&byte| byte == b'\n') {
            for part in piece.chunks(LONGEST_LINE) {
                self.partial.extend_from_slice(part);
                if part.ends_with(b"\n") || self.partial.len() >= LONGEST_LINE {
                    self.end_line();
                }
            }
        }
    }

    fn end_line(&mut self) {
        if !self.partial.is_empty() {
            let line = self.partial_line();
            self.partial.clear();
            self.add(line);
        }
    }

    fn add(&mut self, line: PaneLine) {
        self.lines.push_back(line);
        if self.below > 0 {
            self.below += 1;
        }
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
            self.below = self.below.min(MOST_LINES - 1);
        }
    }

    fn partial_line(&self) -> PaneLine {
        PaneLine {
            text: shown(&self.partial),
            source: match self.partial_stream {
                OutputStream::Stderr => Source::Stderr,
                OutputStream::Stdout | OutputStream::Unspecified => Source::Stdout,
            },
        }
    }

    /// Moves the lines by this many, back with a negative number.
    pub(super) fn scroll(&mut self, lines: isize) {
        let most = self.lines.len().saturating_sub(1);
        self.below = self.below.saturating_add_signed(-lines).min(most);
    }

    /// Returns whether new output is followed.
    pub(super) fn follows(&self) -> bool {
        self.below == 0
    }

    /// The last `count` lines, or those above the place that was scrolled to.
    pub(super) fn last(&self, count: usize) -> Vec<PaneLine> {
        let partial = Some(&self.partial).filter(|partial| !partial.is_empty());
        let mut lines: Vec<PaneLine> = partial.map(|_| self.partial_line()).into_iter().collect();
        lines.extend(
            self.lines
                .iter()
                .rev()
                .take(self.below.saturating_add(count))
                .cloned(),
        );
        let mut lines: Vec<_> = lines.into_iter().skip(self.below).take(count).collect();
        lines.reverse();
        lines
    }
}

/// A line of output: after its last carriage return, which draws over the text before it.
fn shown(line: &[u8]) -> String {
    let line = String::from_utf8_lossy(line);
    let line = line.trim_end_matches(['\r', '\n']);
    let latest = line.rsplit('\r').next().unwrap_or_default();
    text::visible(&latest.replace('\t', "    ")).into_owned()
}
