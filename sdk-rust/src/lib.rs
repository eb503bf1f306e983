//! The Rust client of Heeler: it starts, watches, inspects and stops background tasks through the
//! daemon of the calling user.
//!
//! ```no_run
//! use heeler_client::{CancelOptions, Client, Error, Spawn};
//!
//! # async fn example() -> Result<(), Error> {
//! let client = Client::connect_or_start().await?;
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
//! # Additions to the generated stub
//!
//! - [`Client`] connects over the user's Unix socket, or over TCP with [`ConnectOptions`], and is cheap
//!   to clone. Its calls take a builder ([`Spawn`], [`Wait`], [`ListOptions`]) or the request message.
//! - [`Task`] is a handle: an id. Dropping it has no effect on the task. [`Session`] is one for all tasks of a
//!   session.
//! - [`Watch`] is the event stream. It reconnects and resumes: no event is lost or repeated.
//! - [`Attach`] attaches to a task and streams its output. It reconnects in the same way.
//!   [`Client::run`] spawns a foreground task and attaches to it.
//! - [`Task::input`] is the task's stdin or terminal as an `AsyncWrite`. It reconnects in the same way.
//! - [`Client::host`] runs a body as a hosted task: it gets a [`Work`] with cancellation tokens, progress and
//!   messages. [`Client::current`] is the same for a process inside a task. The stream reconnects in the same
//!   way.
//! - [`Error`] is typed from the details that the daemon sends with every refusal.
//!
//! # Retries
//!
//! A call that finds the daemon restarting is repeated, with growing and jittered delays, for up to five
//! seconds ([`Client::retry_for`]). Reads, Cancel, Detach and Wait have the same effect if they are
//! received twice. [`Spawn`] has a `request_id`, by which the daemon recognises it. Remove is repeated
//! only if the daemon cannot have received it.
//!
//! [`Client::raw`] is the generated stub without retries and typed errors.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

/// Compiles the program of the README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

mod backoff;
mod client;
mod connect;
mod error;
mod input;
mod key;
mod option_names;
mod request;
mod session;
mod stream;
mod task;
pub mod time;
mod work;

pub use client::{Client, Connection, Stub};
pub use connect::{Address, AddressError, ConnectOptions, CredentialsError, Headers, paths};
pub use error::{Error, FieldViolation, Reason, Refusal};
pub use heeler_proto::v1;
pub use input::{InputOptions, InputWriter};
pub use key::key_bytes;
pub use request::{
    CancelOptions, DetachOptions, Filter, Hosted, ListOptions, QueueUpdate, Spawn, Wait,
};
pub use session::{Session, SessionCounts};
pub use stream::{
    Attach, AttachEnded, AttachItem, AttachOptions, Chunk, Follow, FollowItem, Output, Tasks,
    Watch, WatchItem, WatchOptions,
};
pub use task::{Task, TaskEvents};
pub use tokio_stream::{Stream, StreamExt};
pub use tokio_util::sync::CancellationToken;
pub use tonic::{Code, codegen::Bytes};
pub use work::{Progress, Work, WorkResult};
