//! A process whose main thread has ended and whose other threads run. It shows as a zombie, has no
//! environment, and `cgroup.kill` does not kill it.

use heeler_tests::{
    Daemon, Fixture, Process, Setting, eventually, in_each_setting, outcome::proof_in,
};

use super::{assert_cancelled_after_its_shim, assert_dead, assert_dead_after_its_shim};

in_each_setting! {
    a_cancel_ends_processes_without_a_main_thread,
    processes_without_a_main_thread_die_after_their_shim,
    a_cancel_whose_shim_is_killed_ends_processes_without_a_main_thread,
}

/// A leader and a child without their main threads, which ignore the stop signal.
async fn tree(daemon: &Daemon) -> (Fixture, Vec<Process>) {
    let script = "ignore TERM fork [ setsid pid child lose-main-thread ] lose-main-thread";
    let fixture = daemon.run(&daemon.api().await, script).await;
    let tree = fixture.processes(&["leader", "child"]).await;
    let is_zombie = |one: &Process| one.stat().is_some_and(|stat| stat.state == 'Z');
    eventually("the end of the main threads", || tree.iter().all(is_zombie)).await;
    (fixture, tree)
}

/// C4, C14
async fn a_cancel_ends_processes_without_a_main_thread(daemon: Daemon, setting: Setting) {
    let (mut fixture, _) = tree(&daemon).await;
    let stopped = daemon.api().await.kill(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(proof_in(&stopped), setting.proof());
}

/// R2
async fn processes_without_a_main_thread_die_after_their_shim(mut daemon: Daemon, _: Setting) {
    let (fixture, running) = tree(&daemon).await;
    assert_dead_after_its_shim(&daemon.api().await, &fixture, &running).await;

    let (fixture, running) = tree(&daemon).await;
    let shim = heeler_tests::task_file::shim_of(&running[0]);
    daemon.kill9();
    heeler_tests::process::kill_all(&[shim]).await;
    daemon.restart().await;
    daemon.api().await.ended(&fixture.id).await;
    assert_dead(&running);
}

/// C14, R2
async fn a_cancel_whose_shim_is_killed_ends_processes_without_a_main_thread(
    daemon: Daemon,
    _: Setting,
) {
    let (fixture, running) = tree(&daemon).await;
    assert_cancelled_after_its_shim(&daemon.api().await, &fixture, &running).await;
}
