//! The harness: it starts, kills and restarts the real daemon, talks to it by the contract alone,
//! and sees to it that a test leaves nothing behind.
//!
//! | module | holds |
//! | --- | --- |
//! | [`binary`] | which `heeler` is under test |
//! | [`boot`] | another boot of the machine |
//! | [`builder`] | how a daemon is to be started |
//! | [`daemon`] | one daemon in a directory of its own |
//! | [`crash`] | deaths at named points of the server |
//! | [`follower`] | a watcher that comes back after every crash |
//! | [`storm`] | a load under which the server is killed again and again |
//! | [`audit`] | the account of a storm |
//! | [`chance`] | numbers that look random and can be had again |
//! | [`cleanup`] | what is checked, and removed, when a test is over |
//! | [`process`] | processes as the kernel shows them |
//! | [`fixture`] | the child that misbehaves: starting one, knowing its processes |
//! | [`api`] | the calls of the service |
//! | [`watch`] | the event stream |
//! | [`request`] | short ways to write requests |
//! | [`cli`] | the `heeler` command |
//! | [`tcp`] | a daemon's TCP addresses and its token |
//! | [`authority`] | certificates and their keys |
//! | [`http2`] | one call without a gRPC library |
//! | [`grpcurl`] | the same calls by a client that has only reflection |
//! | [`refusal`] | what a refused call says |
//! | [`setting`] | the settings of the kill ladder |
//! | [`sessions`] | what a history says of sessions |
//! | [`lone_shim`] | a shim without a server |
//! | [`small_disk`] | a disk that is soon full |
//! | [`failing_disk`] | a disk that becomes read-only |
//! | [`terminal`] | the command at a terminal, and somebody who types |
//! | [`task_file`] | task files, byte by byte |
//! | [`waiting`] | waiting for a condition, with a deadline |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod api;
pub mod attachment;
pub mod audit;
pub mod authority;
pub mod binary;
pub mod boot;
pub mod builder;
pub mod chance;
pub mod cleanup;
pub mod cli;
pub mod crash;
pub mod daemon;
pub mod failing_disk;
pub mod fixture;
pub mod follower;
pub mod grpcurl;
pub mod http2;
pub mod lone_shim;
pub mod process;
pub mod refusal;
pub mod request;
pub mod sessions;
pub mod setting;
pub mod small_disk;
pub mod storm;
pub mod task_file;
pub mod tcp;
pub mod terminal;
pub mod waiting;
pub mod watch;

pub use api::Api;
pub use attachment::Attachment;
pub use authority::Authority;
pub use daemon::Daemon;
pub use failing_disk::FailingDisk;
pub use fixture::Fixture;
pub use follower::Follower;
pub use heeler_proto::v1;
pub use lone_shim::{LoneShims, LoneTask};
pub use process::Process;
pub use refusal::Refusal;
pub use request::{argv, exclusive, foreground, held, micros, millis, queued, secs, shell};
pub use setting::Setting;
pub use small_disk::SmallDisk;
pub use waiting::{DEADLINE, eventually, eventually_some, within};
pub use watch::Watch;

/// Output that can be told apart at every offset, up to its period of 99,990 bytes.
pub fn pattern(len: usize) -> Vec<u8> {
    let numbers = (0..9_999).flat_map(|n| format!("{n:09}\n").into_bytes());
    numbers.cycle().take(len).collect()
}

/// Whether a missing tool or kernel feature is a failure rather than a reason to skip.
pub fn on_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Says loudly that a test was not run; on CI, fails it.
pub fn skipped(why: &str) {
    assert!(!on_ci(), "not to be skipped on CI: {why}");
    eprintln!("SKIPPED: {why}");
}
