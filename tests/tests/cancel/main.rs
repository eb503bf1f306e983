//! Cancel: how a tree is stopped, which trees it reaches, and what the answer says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod contract;
mod reach;
mod stop;
mod survivors;
