//! The facts of a task's life, up to its end.

pub(super) mod outcome;
pub(super) mod proof;
pub(super) mod session;
pub(super) mod state;
pub(super) mod stop;
