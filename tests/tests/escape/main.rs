//! Processes that hide, or leave what keeps their tree together. None is left when an end is reported,
//! with the shim alive or killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cgroup;
mod main_thread;
mod marks;
mod namespace;

use heeler_tests::{
    Api, Fixture, Process, eventually,
    outcome::{assert_lost, proof_of},
    request::{cancel, grace},
    secs,
    task_file::shim_of,
    v1::*,
};
use nix::sys::signal::Signal::SIGKILL;

#[track_caller]
fn assert_alive(processes: &[Process]) {
    let dead: Vec<&Process> = processes.iter().filter(|one| !one.is_alive()).collect();
    assert!(dead.is_empty(), "dead: {dead:?}");
}

#[track_caller]
fn assert_dead(processes: &[Process]) {
    let left: Vec<&Process> = processes.iter().filter(|one| one.is_alive()).collect();
    assert!(left.is_empty(), "alive: {left:?}");
}

/// Kills the shim of a leader that ignores nothing else.
async fn kill_shim(leader: &Process) {
    let shim = shim_of(leader);
    shim.signal(SIGKILL);
    eventually("the death of the shim", || !shim.is_alive()).await;
}

/// Kills the shim of a running task, which must then be lost and its tree dead.
async fn assert_dead_after_its_shim(api: &Api, fixture: &Fixture, tree: &[Process]) {
    assert_alive(tree);
    kill_shim(&fixture.process("leader").await).await;
    let task = api.ended(&fixture.id).await;
    assert_dead(tree);
    assert_lost(&task, "of its processes, which lived on");
}

/// Kills the shim of a task that is being stopped, whose tree must then be dead and proven so.
async fn assert_cancelled_after_its_shim(api: &Api, fixture: &Fixture, tree: &[Process]) {
    let leader = fixture.process("leader").await;
    let request = CancelRequest {
        how: grace(secs(600)),
        ..cancel(&fixture.id)
    };
    api.cancel_one(request).await;
    assert_alive(tree);
    kill_shim(&leader).await;
    let task = api.ended(&fixture.id).await;
    assert_dead(tree);
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(proof_of(&task), ProofMethod::Sweep);
}
