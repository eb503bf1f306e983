//! The `heeler` command.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod command;
mod run;
mod script;
mod serve_log;
