//! Clients: the Rust SDK, its examples, generated stubs for Go, and generic clients.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod go;
mod grpcurl;
mod install_lines;
mod recipes;
mod reflection;
mod work;
