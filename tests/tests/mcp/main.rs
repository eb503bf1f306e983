//! `heeler mcp`: the Model Context Protocol, by real clients and by messages of its own.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_input;
mod clients;
mod connection;
mod crash;
mod mcp_tasks;
mod output;
mod resources;
mod scope;
mod transcript;
mod waiting;

use connection::Mcp;
