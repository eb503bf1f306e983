//! Time: deadlines and silence.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod deadline;
mod silence;
