//! The test harness. It starts, kills and restarts the real daemon, talks to it through the contract
//! alone, and fails a test that leaves anything behind.
//!
//! | module | contents |
//! | --- | --- |
//! | [`daemon`] | one daemon in a directory of its own: start, crash, restart, clean-up |
//! | [`client`] | a client by the contract alone: calls, streams, and what answers say |
//! | [`network`] | TCP addresses and tokens, certificates, calls without a gRPC library |
//! | [`program`] | `heeler` at a shell or a terminal, and grpcurl |
//! | [`request`] | builders of requests, and accessors of a task's specification |
//! | [`process`] | processes in `/proc`, the fixture, shims and task files |
//! | [`disk`] | disks that are full or fail |
//! | [`storm`] | load under which the server is killed repeatedly, and its audit |
//! | [`waiting`] | waiting for a condition, with a deadline |

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

pub mod client;
pub mod daemon;
pub mod disk;
pub mod network;
pub mod process;
pub mod program;
pub mod request;
pub mod storm;
pub mod waiting;

pub use client::{
    Api, Attachment, Follow, Follower, Refusal, Watch, Worker, history, outcome, output, refusal,
    sessions, watch, worker,
};
pub use daemon::{
    Daemon,
    containment::{self, Setting},
    crash,
};
pub use disk::{FailingDisk, FileSystem, ImageDisk, SmallDisk};
pub use heeler_proto::v1;
pub use network::{
    Authority, Collector, Receiver, authority, collector, http1, http2, openmetrics, receiver, tcp,
};
pub use process::{
    Begins, Fixture, LoneShims, LoneTask, OutputRules, Process, RelayClient, task_file,
};
pub use program::{binary, cli, grpcurl, terminal};
pub use request::{
    SpawnRequestExt, TaskSpecExt, argv, exclusive, foreground, micros, millis, queued, secs, shell,
    shell_by,
};
pub use waiting::{DEADLINE, eventually, eventually_some, within};

/// Bytes that differ at every offset, up to a period of 99,990 bytes.
pub fn pattern(len: usize) -> Vec<u8> {
    let numbers = (0..9_999).flat_map(|n| format!("{n:09}\n").into_bytes());
    numbers.cycle().take(len).collect()
}

/// The part of an endless output of numbered lines between two offsets: no two parts of it are the same.
pub fn numbered(offsets: std::ops::Range<u64>) -> Vec<u8> {
    const LINE: u64 = 10;
    let first = offsets.start / LINE;
    let len = (offsets.end - first * LINE) as usize;
    let mut line = format!("{first:09}\n").into_bytes();
    let mut bytes = Vec::with_capacity(len + line.len());
    while bytes.len() < len {
        bytes.extend_from_slice(&line);
        // Counts by hand: some tests write and check hundreds of megabytes.
        for digit in line[..9].iter_mut().rev() {
            *digit += 1;
            if *digit <= b'9' {
                break;
            }
            *digit = b'0';
        }
    }
    bytes.truncate(len);
    bytes.split_off((offsets.start % LINE) as usize)
}

/// Returns true on CI, where a missing tool or kernel feature fails a test instead of skipping it.
pub fn on_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| value == "true")
}

/// Reports that a test was skipped because the machine lacks a package of its distribution, which CI may be
/// without: `.ci/run` names it.
pub fn not_installed(program: &str) {
    eprintln!("SKIPPED: {program} is not installed");
}

/// Reports that a test was skipped; on CI, fails it.
pub fn skipped(why: &str) {
    assert!(!on_ci(), "must not be skipped on CI: {why}");
    eprintln!("SKIPPED: {why}");
}
