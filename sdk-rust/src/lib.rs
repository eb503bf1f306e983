//! The Rust client of Heeler: it starts, watches, inspects and stops background tasks through the
//! daemon of the calling user.
//!
//! ```no_run
//! use heeler_client::{CancelOptions, Client, Error, Spawn};
//!
//! # async fn example() -> Result<(), Error> {
//! let client = Client::connect_default().await?;
//! let task = client.spawn(Spawn::shell("make -j4").session("s1")).await?;
//! println!("{} runs", task.id());
//!
//! let ended = task.wait().await?;
//! println!("{:?}", ended.outcome);
//!
//! // Cancel means gone: `stop.proof` says how the emptiness of the tree was proven.
//! let result = task.cancel(CancelOptions::graceful().reason("not needed")).await?;
//! println!("{:?}", result.task.and_then(|task| task.stop));
//! # Ok(())
//! # }
//! ```
//!
//! # What it adds to the generated stub
//!
//! - [`Client`] connects over the user's Unix socket, or over TCP with [`ConnectOptions`], and is cheap
//!   to clone. Its calls take either a
//!   builder from this crate ([`Spawn`], [`Wait`], [`ListOptions`]) or the request message itself.
//! - [`Task`] is a handle by id: it holds no resource, and dropping it does nothing to the task.
//! - [`Watch`] is the event stream as it should be consumed: it reconnects, and resumes without a
//!   loss and without a repeat.
//! - [`Attach`] holds a task in the foreground and gives its output until the release, with the same
//!   persistence; [`Client::run`] spawns and attaches in one.
//! - [`Error`] is typed from the details that the daemon sends with every refusal.
//!
//! # What is repeated, and when
//!
//! A call that finds the daemon restarting is tried again, with growing and jittered delays, for up
//! to five seconds ([`Client::retry_for`]). That is safe for every call: reading has no effect,
//! Cancel, Detach and Wait mean the same when asked twice, and [`Spawn`] carries a fresh `request_id` unless
//! the caller chose one, by which the daemon knows it again. Remove is repeated only while it cannot
//! have been heard.
//!
//! [`Client::raw`] gives the generated stub, without any of this.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod address;
mod attach;
mod backoff;
mod batches;
mod cancel;
mod client;
mod connect;
mod credentials;
mod detach;
mod error;
mod filter;
mod list;
mod output;
pub mod paths;
mod queue;
mod resume;
mod spawn;
mod task;
pub mod time;
mod wait;
mod watch;

pub use address::{Address, AddressError};
pub use attach::{Attach, AttachEnded, AttachItem, AttachOptions};
pub use cancel::CancelOptions;
pub use client::{Client, Stub};
pub use credentials::{Bearer, ConnectOptions, CredentialsError};
pub use detach::DetachOptions;
pub use error::{Error, FieldViolation, Reason, Refusal};
pub use filter::Filter;
pub use heeler_proto::v1;
pub use list::{ListOptions, Tasks};
pub use output::{Chunk, Output};
pub use queue::QueueUpdate;
pub use spawn::Spawn;
pub use task::{Task, TaskEvents};
pub use tokio_stream::{Stream, StreamExt};
pub use tonic::{Code, codegen::Bytes};
pub use wait::Wait;
pub use watch::{Watch, WatchItem, WatchOptions};
