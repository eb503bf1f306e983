//! The processes of a task: reaped, listed, signalled and killed.

pub(crate) mod kill;
pub(crate) mod pace;
pub(crate) mod processes;
pub(crate) mod reaper;
pub(crate) mod signal;

mod pid_set;
mod walk;
