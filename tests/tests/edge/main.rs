//! The edge of the service under clients that do not read, do not send, or ask for too much: every other
//! client is served as usual, and the daemon's memory is bounded.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connections;
mod fair_shares;
mod past;
mod process_limit;
mod slow_readers;

use std::time::{Duration, Instant};

use heeler_tests::{Daemon, cli::CommandResult};

/// The most time that a call of an ordinary client may take, on a machine that is busy with other tests.
/// The daemon's own time limit for a request is longer: no call is served because of that limit.
const SERVED: Duration = Duration::from_secs(9);

/// Runs `heeler ARGS…`, a client of its own, which must be served.
async fn served(daemon: &Daemon, args: &[&str]) -> CommandResult {
    let begun = Instant::now();
    let result = daemon.heeler(args).await.ok();
    let elapsed = begun.elapsed();
    assert!(elapsed < SERVED, "{args:?} took {elapsed:?}");
    result
}

/// An ordinary client starts a task, looks at it from every side, and stops another.
async fn all_is_served(daemon: &Daemon) {
    let id = daemon.spawned(&["--", "sh", "-c", "echo hello"]).await;
    served(daemon, &["wait", &id]).await;
    let logs = served(daemon, &["logs", &id]).await;
    assert_eq!(logs.stdout, "hello\n");
    served(daemon, &["inspect", &id]).await;
    served(daemon, &["ps", "-a"]).await;
    served(daemon, &["events", "--after", "0"]).await;
    let id = daemon.spawned(&["--", "sleep", "1000"]).await;
    served(daemon, &["cancel", "--force", &id]).await;
}
