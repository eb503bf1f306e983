//! A terminal session with one task, as `run` and `attach` have it.
//!
//! ```text
//! Attach stream ──┐
//! late output  ───┤                        ┌──> output ──> writer thread ──> stdout, stderr
//! signals      ───┼──> session (one loop) ─┤
//! detach key   ───┤                        └──> calls to the daemon: cancel, detach, wait
//! responses    ───┘
//! ```

mod closing_message;
pub(crate) mod input;
pub(crate) mod keyboard;
mod late_output;
pub(crate) mod output;
mod query_filter;
pub(crate) mod queue_notes;
pub(crate) mod relay;
pub(crate) mod session;
pub(crate) mod signals;
mod terminal_modes;
mod writer_thread;
