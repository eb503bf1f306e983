//! List, Inspect, Wait, Remove and retention.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod filter;
mod inspect;
mod list;
mod remove;
mod retention;
mod wait;
