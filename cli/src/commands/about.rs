//! The commands about the command itself. They need no daemon.

pub(crate) mod completions;
pub(crate) mod man;
pub(crate) mod version;
