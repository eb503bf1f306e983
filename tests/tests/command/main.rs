//! The `heeler` command.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;
mod command;
mod doctor;
mod documented;
mod habits;
mod json;
mod listing;
mod output;
mod restart;
mod run;
mod script;
mod serve_log;
mod task_words;
mod top;
