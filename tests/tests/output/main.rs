//! Output: reading it as bytes, as text and as lines, following it, patterns in it, and its limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod budget;
mod filter;
mod follow;
mod limits;
mod matches;
mod plain;
mod privacy;
mod read;
mod starts;
mod summary;
mod text;
