//! The `heeler` command.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod capture;
mod command;
mod completion;
mod doctor;
mod examples;
mod habits;
mod installed_files;
mod json;
mod listing;
mod readme;
mod restart;
mod run;
mod script;
mod serve_log;
mod task_words;
