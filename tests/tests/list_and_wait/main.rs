//! List, Inspect, Wait, Remove and retention.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod list;
mod retention;
mod wait;
