//! Restart: crashes, recovery, shutdown and power cuts.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crash;
mod formats;
mod power_cut;
mod recovery;
mod shutdown;

use heeler_tests::{Daemon, Fixture, v1::TaskState};

/// Asserts that a daemon has ended and left a task running, which the next one takes back.
async fn assert_taken_back(daemon: &mut Daemon, fixture: &Fixture) {
    assert!(!daemon.socket().exists(), "the socket is left");
    let leader = fixture.process("leader").await;
    assert!(leader.is_alive());
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_eq!(
        (task.state(), task.leader.unwrap().pid),
        (TaskState::Running, leader.pid)
    );
}
