//! Reading a task's output: from any place, in pieces of bounded size, and by lines.
//!
//! Reads of bytes take little time and run on the runtime's threads for blocking work. Searches by regular
//! expressions take turns on threads of their own.
//!
//! | module | owns |
//! | --- | --- |
//! | `source` | the output of one task as chunks and gaps |
//! | `start` | the offset that a start stands for |
//! | `read`, `head_and_tail` | pieces of output, as they were written |
//! | `line_reader`, `search` | lines, and those that a filter selects |
//! | `patterns` | the lines that match the patterns of a task |
//! | `turns`, `search_threads` | the order in which searches are done, and where |
//! | `excerpts` | tails, summaries and lines for events |

pub(super) mod excerpts;
mod head_and_tail;
mod line_reader;
mod patterns;
mod read;
mod search;
mod search_threads;
mod source;
mod start;
mod turns;

pub(crate) use excerpts::{Excerpt, ExcerptKind, LINE_BYTES, TAIL_BYTES};
pub(crate) use head_and_tail::{HeadAndTail, Part};
pub(super) use patterns::{PatternSearch, Searched};
pub(crate) use read::{Boundary, Limits, Piece, Read};
pub(crate) use search::Search;
pub(super) use search_threads::Turn;
pub(crate) use search_threads::{SearchKey, SearchThreads};
pub(crate) use source::Extent;
pub(crate) use start::OutputStart;
