//! Spawn: the start of a task, its environment, request ids and the trailing ampersand.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ampersand;
mod environment;
mod limits;
mod request_id;
mod start;
