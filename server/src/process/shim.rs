//! Shims: starting them, keeping a few ready, giving them tasks, and talking to them.
//!
//! ```text
//!            start               launch: the task goes over the link
//!  (none) ──────────> idle ────────────────────────────────────────> at work
//!                      ^                                                │
//!                      └──── give_back: the task has ended quietly ─────┘
//! ```
//!
//! An idle shim exits with the server; a shim at work outlives it. The server-side names of the shim's
//! messages are [`ShimOrder`] and [`ShimReport`]; what a shim records is in [`super::task_file`].

#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod launch;
mod link;
mod pool;
mod process;
mod program;

pub use heeler_shim::{
    input::Stdin,
    wire::{AfterTask, Order as ShimOrder, Report as ShimReport},
};
pub(crate) use heeler_shim::{
    input::{INPUT_BUFFER, InputState, TerminalSize as ShimTerminalSize},
    wire::{NOTE_PARTS, NotePart, STORED_STEP, WRITER},
};
pub use launch::{AfterFailure, Launch};
pub use link::ShimLink;
pub use pool::ShimPool;
pub(crate) use process::ShimProcess;
pub use program::RecordSync;
