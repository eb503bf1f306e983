//! The shim: the pool, output in memory, and abandoned trees.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abandon;
mod memory;
mod pool;
