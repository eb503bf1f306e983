//! Events: the stream and the activity of sessions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod owners;
mod sessions;
mod stream;
