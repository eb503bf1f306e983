//! Workers: hosted tasks, workers of tasks with processes, progress, soft cancels, messages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod agent;
mod bad_input;
mod hosted;
mod lease;
mod messages;
mod progress;
mod restart;
mod soft_cancel;
