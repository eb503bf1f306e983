//! JSON over HTTP: calls, streams, refusals, shares, the page, the dashboard and the metrics.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod calls;
mod dashboard;
mod metrics;
mod read_only;
mod refusals;
mod shares;
