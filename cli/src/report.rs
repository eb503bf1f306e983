//! The end of the command: its exit code, its failures in words and as JSON, and what it prints.

pub(crate) mod exit;
pub(crate) mod failure;
mod flag_names;
pub(crate) mod out;
