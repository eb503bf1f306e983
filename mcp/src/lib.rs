//! Heeler for agents: a server of the Model Context Protocol on stdio, over the Rust client.
//!
//! A model calls tools; each tool makes a few calls to the daemon and answers with text and the same as
//! structured data, both bounded for a context window. Nothing is kept here that a restart would miss:
//! tasks, output and their history are the daemon's. A connection remembers only how far its client has
//! read each output.
//!
//! | module | content |
//! | --- | --- |
//! | `server` | the protocol's requests, both lifecycles |
//! | `tools` | a file per tool: description, input, output, what it does |
//! | `input` | schemas, and the check of arguments against them |
//! | `view` | tasks, output and proofs in the words of the answers |
//! | `connection` | the daemon, the session, the scope, what was read |
//! | `mcp_task` | the tasks extension: a call as an MCP task |
//! | `resources`, `notices` | the task list and outputs as resources; ends as log messages |
//! | `problem`, `defect` | tool errors with the next step; panics as tool errors |
//! | `progress`, `time_limit` | progress of calls that wait; the end of those that are not answered |
//! | `hosts` | the configuration of known hosts |

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod connection;
mod defect;
mod hosts;
mod input;
mod mcp_task;
mod notices;
mod problem;
mod progress;
mod resources;
mod server;
mod stdio;
mod time_limit;
mod tools;
mod view;

pub use connection::{AtTheEnd, Options, Reach};
pub use hosts::Host;
pub use server::{Error, serve};
