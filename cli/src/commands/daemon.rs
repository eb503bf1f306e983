//! The commands that run, start, end, examine and show the daemon.

pub(crate) mod dashboard;
pub(crate) mod doctor;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod start;
