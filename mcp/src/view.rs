//! Tasks, output and proofs in the words of the answers: short text for the model, and the same as data.

mod cursor;
mod excerpt;
mod found;
mod kept;
mod proof;
mod task;
mod words;

pub(crate) use cursor::Cursor;
pub(crate) use excerpt::{Excerpt, Limit, Part, text_of};
pub(crate) use found::cut_lines;
pub(crate) use kept::Kept;
pub(crate) use proof::proof;
pub(crate) use task::{TaskView, is_finished};
pub(crate) use words::{bytes, cut, span, summary, word};
