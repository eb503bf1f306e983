//! Storage: full and failing disks, damaged files and journals.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod disk;
mod full;
mod journal;
mod permissions;
mod read_only;
mod removed;
mod task_file;
mod wal;

use heeler_tests::{Api, Daemon, outcome::exit_code};

/// Asserts that the server still runs tasks and has not panicked.
async fn assert_sound(daemon: &Daemon, api: &Api) {
    let task = api.start(daemon.script("print fine exit 3")).await;
    assert_eq!(exit_code(&api.ended(&task.id).await), 3);
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

/// The stderr of a server that must refuse to start.
async fn refused(daemon: &Daemon) -> String {
    daemon.refused_start(&daemon.state_dir(), &[]).await
}
