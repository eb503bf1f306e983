//! Output: reading it as bytes and as text.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod privacy;
mod read;
mod text;
