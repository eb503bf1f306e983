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
pub(crate) mod keyboard;
mod late_output;
pub(crate) mod output;
pub(crate) mod queue_notes;
pub(crate) mod session;
pub(crate) mod signals;
mod writer_thread;
