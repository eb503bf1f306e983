//! The measured programs: the real daemon, its state and its tasks, and the processes of both.

pub(crate) mod connection;
pub(crate) mod daemon;
pub(crate) mod http;
pub(crate) mod past;
pub(crate) mod process;
pub(crate) mod program;
pub(crate) mod tasks;
