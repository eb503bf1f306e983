//! The commands that start tasks, wait for them, attach to them, change them and end them.

pub(crate) mod attach;
pub(crate) mod cancel;
pub(crate) mod detach;
pub(crate) mod kill;
pub(crate) mod restart;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod spawn;
pub(crate) mod update;
pub(crate) mod wait;
