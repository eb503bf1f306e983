//! A task's output, from its pipes to a file.

pub(crate) mod capture;
pub(crate) mod limits;
pub(crate) mod log_file;
pub(crate) mod writer;

mod memory_file;
mod removal;
