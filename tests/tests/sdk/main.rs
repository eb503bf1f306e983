//! Clients: the Rust SDK, its examples, and grpcurl.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod grpcurl;
mod recipes;
