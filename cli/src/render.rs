//! Text and JSON for people and scripts: turns messages of the contract into lines. Nothing here calls
//! the daemon or writes to a terminal.
//!
//! Text that comes from a task is hostile until [`text::visible`] has escaped it. Tables and cards do so
//! themselves; the caller of any other function does it when it prints.

pub(crate) mod attempts;
pub(crate) mod card;
mod ending;
pub(crate) mod event;
pub(crate) mod gap;
pub(crate) mod json;
pub(crate) mod log_lines;
mod policies;
mod process_tree;
pub(crate) mod progress;
mod screen;
pub(crate) mod spec;
pub(crate) mod status;
pub(crate) mod task_format;
pub(crate) mod units;

pub(crate) use ending::{causes, outcome, proof};
pub(crate) use screen::{colour, table, text};
