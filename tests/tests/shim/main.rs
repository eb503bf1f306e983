//! The shim: the pool, output in memory and its limits, abandoned trees, and attacks on the shim itself.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod abandon;
mod crowd;
mod limits;
mod memory;
mod pool;
mod stopped;
