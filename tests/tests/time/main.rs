//! Time: clocks, deadlines and silence.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
mod deadline;
mod silence;
