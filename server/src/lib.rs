//! The Heeler daemon as a library: [`run`] is `heeler serve` without its command line.
//!
//! A request's path, which is also the order to read in:
//!
//! | module | what it is |
//! | --- | --- |
//! | [`service`] | the gRPC edge: checks, answers, listens |
//! | [`supervisor`] | who may do what, and when: one actor per live task |
//! | [`process`] | the operating system: starting, watching and ending trees |
//! | [`journal`] | the truth on disk, and the only road to watchers |
//! | [`task`] | the vocabulary that all of them share |
//!
//! `service → supervisor → {process, journal}`; the service also reads the journal; nothing points
//! back up.

pub mod journal;
pub mod process;
pub mod service;
pub mod supervisor;
pub mod task;

mod config;
mod crash;
mod serve;
mod strays;

pub use config::{Config, Limits, Listen, OnExit, Retention, TlsFiles};
pub use serve::{Ready, RunError, run};
