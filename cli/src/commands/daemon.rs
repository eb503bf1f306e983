//! The commands that run, start, end and examine the daemon.

pub(crate) mod doctor;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod start;
