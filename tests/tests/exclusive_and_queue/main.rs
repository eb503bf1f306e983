//! Exclusive keys, queues and limits.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod ensure;
mod exclusive;
mod queue;
mod replace;

use heeler_tests::{Daemon, v1::SpawnRequest};

/// A task that prints `begun` and runs until the gate is opened.
fn gated(daemon: &Daemon, gate: &str) -> SpawnRequest {
    daemon.script(&format!("print begun gate {} exit 0", daemon.file(gate)))
}
