//! Output in the contract's messages: the part that a request selects, and pieces of it in a view.

use std::{iter::Peekable, sync::Arc, vec};

use heeler_proto::v1;

use super::{check, convert, refusal::Refusal, text};
use crate::{
    output::{
        pattern::LinePattern,
        plain::line_text,
        select::{Escapes, LineFilter},
    },
    supervisor::{Boundary, Piece},
    task::{Chunk, Item, Stream, Timestamp},
};

/// Maximum number of lines of context.
const CONTEXT: u32 = 100;
/// Maximum length of an escape sequence that is removed wherever a piece of output begins.
const LONGEST_ESCAPE: u64 = 4096;

/// The form in which output is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Raw,
    Text,
    /// Text without escape sequences.
    Plain,
}

/// The part of the output that a request selects.
#[derive(Debug, Clone)]
pub(crate) enum Selection {
    All,
    Stream(Stream),
    Lines(Arc<LineFilter>),
}

impl View {
    pub(crate) fn read(field: &str, value: i32) -> Result<Self, Refusal> {
        Ok(match check::enumerated(field, value)? {
            v1::OutputView::Unspecified | v1::OutputView::Raw => Self::Raw,
            v1::OutputView::Text => Self::Text,
            v1::OutputView::Plain => Self::Plain,
        })
    }

    /// The places at which a piece may begin.
    pub(crate) fn boundary(self) -> Boundary {
        match self {
            Self::Raw => Boundary::Byte,
            Self::Text | Self::Plain => Boundary::Character,
        }
    }

    /// The size of output before a piece that the view depends on.
    pub(crate) fn lead(self) -> u64 {
        match self {
            Self::Raw | Self::Text => 0,
            Self::Plain => LONGEST_ESCAPE,
        }
    }

    /// Shows output as it was written; returns the offset to continue from, too. `is_complete`: no byte
    /// will follow the end.
    pub(crate) fn bytes(self, piece: Piece, is_complete: bool) -> (Vec<v1::OutputChunk>, u64) {
        let escapes = match self {
            Self::Raw => {
                let chunks = piece.items.into_iter().map(convert::raw);
                return (chunks.collect(), piece.next);
            }
            Self::Text => Escapes::Kept,
            Self::Plain => Escapes::Removed,
        };
        text::view(piece, escapes, is_complete)
    }

    /// Shows lines, each as one chunk. With lines of context, `groups` has the offsets of those that begin a group.
    pub(crate) fn lines(self, items: Vec<Item>, groups: Option<Vec<u64>>) -> Vec<v1::OutputChunk> {
        let mut groups = groups.map(|groups| groups.into_iter().peekable());
        let show = |item: Item| {
            let line = match item {
                Item::Gap(gap) => return convert::gap(gap),
                Item::Chunk(line) => line,
            };
            let begins_group = |groups: &mut Peekable<vec::IntoIter<u64>>| {
                groups.next_if_eq(&line.offset).is_some()
            };
            v1::OutputChunk {
                begins_group: groups.as_mut().map(begins_group),
                ..self.line(line)
            }
        };
        items.into_iter().map(show).collect()
    }

    fn line(self, line: Chunk) -> v1::OutputChunk {
        match self {
            Self::Raw => convert::raw(Item::Chunk(line)),
            Self::Text => {
                let text = String::from_utf8_lossy(&line.data).into_owned();
                convert::text_chunk(&line, line.offset, text)
            }
            Self::Plain => plain_line(&line),
        }
    }
}

fn plain_line(line: &Chunk) -> v1::OutputChunk {
    let mut text = line_text(&line.data, usize::MAX);
    if line.data.ends_with(b"\n") {
        text.push('\n');
    }
    convert::text_chunk(line, line.offset, text)
}

/// Reports whether a filter has regular expressions.
pub(crate) fn has_patterns(filter: &v1::OutputFilter) -> bool {
    !filter.include.is_empty() || !filter.exclude.is_empty()
}

/// Reads a filter of output, whose fields are below `field`.
pub(crate) fn selection(
    field: &str,
    filter: Option<v1::OutputFilter>,
    view: View,
) -> Result<Selection, Refusal> {
    let Some(filter) = filter else {
        return Ok(Selection::All);
    };
    let stream = stream(&format!("{field}.stream"), filter.stream)?;
    let include = pattern(&format!("{field}.include"), &filter.include)?;
    let exclude = pattern(&format!("{field}.exclude"), &filter.exclude)?;
    let context = |name: &str, lines: u32| {
        let refused = |problem| Err(Refusal::field(format!("{field}.{name}"), problem));
        match lines {
            0 => Ok(0),
            _ if include.is_none() => refused("needs include: it is the context of such lines"),
            lines if lines > CONTEXT => refused("is more than 100"),
            lines => Ok(lines as usize),
        }
    };
    let (before, after) = (
        context("lines_before", filter.lines_before)?,
        context("lines_after", filter.lines_after)?,
    );
    if include.is_none() && exclude.is_none() {
        return Ok(stream.map_or(Selection::All, Selection::Stream));
    }
    Ok(Selection::Lines(Arc::new(LineFilter {
        stream,
        include,
        exclude,
        before,
        after,
        escapes: match view {
            View::Raw | View::Text => Escapes::Kept,
            View::Plain => Escapes::Removed,
        },
    })))
}

/// Reads a regular expression that may be empty.
fn pattern(field: &str, expression: &str) -> Result<Option<LinePattern>, Refusal> {
    if expression.is_empty() {
        return Ok(None);
    }
    let compiled = LinePattern::compile(expression);
    compiled
        .map(Some)
        .map_err(|error| Refusal::field(field, error))
}

/// Reads a regular expression that must be there.
pub(crate) fn required_pattern(field: &str, expression: &str) -> Result<LinePattern, Refusal> {
    pattern(field, expression)?.ok_or_else(|| Refusal::field(field, "is required"))
}

/// Reads a stream; `None` if both are wanted.
pub(crate) fn stream(field: &str, value: i32) -> Result<Option<Stream>, Refusal> {
    Ok(match check::enumerated(field, value)? {
        v1::OutputStream::Unspecified => None,
        v1::OutputStream::Stdout => Some(Stream::Stdout),
        v1::OutputStream::Stderr => Some(Stream::Stderr),
    })
}

/// Reads a time. One before 1970 is taken as 1970.
pub(crate) fn time(field: &str, value: prost_types::Timestamp) -> Result<Timestamp, Refusal> {
    if !(0..1_000_000_000).contains(&value.nanos) {
        return Err(Refusal::field(field, "is malformed"));
    }
    let seconds = u64::try_from(value.seconds).unwrap_or(0);
    let micros = seconds.saturating_mul(1_000_000);
    Ok(Timestamp(micros.saturating_add(value.nanos as u64 / 1000)))
}
