//! Tasks that change their cgroups.

use heeler_tests::{Daemon, Fixture, Process, Setting, containment::own_cgroup, outcome::proof_in};

use super::{assert_cancelled_after_its_shim, assert_dead, assert_dead_after_its_shim};

/// A process that has left its cgroup, its session and its environment.
async fn away(daemon: &Daemon) -> (Fixture, Vec<Process>) {
    let elsewhere = own_cgroup().unwrap();
    let script = format!(
        "ignore TERM \
         double-fork [ join-cgroup {} setsid clean-exec [ ignore TERM pid away forever ] ] forever",
        elsewhere.display()
    );
    let fixture = daemon.run(&daemon.api().await, &script).await;
    let tree = fixture.processes(&["leader", "away"]).await;
    let cgroup = std::fs::read_to_string(format!("/proc/{}/cgroup", tree[1].pid)).unwrap();
    assert!(!cgroup.contains(&fixture.id), "still in its cgroup");
    (fixture, tree)
}

/// A leader in a threaded cgroup below the task's, which cannot list its processes.
async fn threaded(daemon: &Daemon) -> (Fixture, Vec<Process>) {
    let script = "ignore TERM threaded-cgroup threads fork [ pid child forever ] forever";
    let fixture = daemon.run(&daemon.api().await, script).await;
    let tree = fixture.processes(&["leader", "child"]).await;
    (fixture, tree)
}

/// C4, C14
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_ends_processes_outside_of_the_cgroup_or_in_a_threaded_one() {
    let Some(daemon) = Setting::Cgroup.start().await else {
        return;
    };
    for (fixture, tree) in [away(&daemon).await, threaded(&daemon).await] {
        let stopped = daemon.api().await.kill(&fixture.id).await;
        assert_dead(&tree);
        assert_eq!(proof_in(&stopped), Setting::Cgroup.proof());
    }
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_process_outside_of_the_cgroup_dies_after_its_shim() {
    let Some(daemon) = Setting::Cgroup.start().await else {
        return;
    };
    let api = daemon.api().await;
    let (fixture, tree) = away(&daemon).await;
    assert_dead_after_its_shim(&api, &fixture, &tree).await;
    let (fixture, tree) = away(&daemon).await;
    assert_cancelled_after_its_shim(&api, &fixture, &tree).await;
}

/// C14, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn processes_in_a_threaded_cgroup_die_after_their_shim() {
    let Some(daemon) = Setting::Cgroup.start().await else {
        return;
    };
    let api = daemon.api().await;
    let (fixture, tree) = threaded(&daemon).await;
    assert_dead_after_its_shim(&api, &fixture, &tree).await;
    let (fixture, tree) = threaded(&daemon).await;
    assert_cancelled_after_its_shim(&api, &fixture, &tree).await;
}
