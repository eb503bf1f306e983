//! The foreground: attached clients, detach, and output that stays in memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attach;
mod detach;
mod memory;
mod retention;
