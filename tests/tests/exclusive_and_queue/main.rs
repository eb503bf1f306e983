//! Exclusive keys, queues and limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod exclusive;
mod queue;
mod replace;
