//! Restart: crashes, recovery, shutdown and power cuts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod formats;
mod power_cut;
mod recovery;
mod shutdown;
