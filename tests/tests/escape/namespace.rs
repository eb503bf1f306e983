//! A task that enters a PID namespace that was there before it, as `nsenter` and `podman exec` do. Its
//! orphans belong to the first process of that namespace, and not to the shim.

use std::{
    process::{Child, Command},
    thread,
};

use heeler_tests::{
    Daemon, Fixture, Process, Setting, eventually, eventually_some, in_each_setting,
    outcome::proof_in,
    request::cancel_matching,
    skipped,
    v1::{CancelRequest, TaskFilter},
};

use super::{assert_cancelled_after_its_shim, assert_dead, assert_dead_after_its_shim};

in_each_setting! {
    a_cancel_ends_an_orphan_in_a_foreign_pid_namespace,
    an_orphan_in_a_foreign_pid_namespace_dies_after_its_shim,
    a_cancel_whose_shim_is_killed_ends_an_orphan_in_a_foreign_pid_namespace,
    a_cancel_by_port_ends_an_orphan_in_a_foreign_pid_namespace,
}

/// A PID namespace outside of all tasks, until it is dropped.
struct Namespace {
    maker: Child,
    first: Process,
}

impl Namespace {
    /// Returns `None`, after reporting a skip, where this user cannot make one.
    async fn make(daemon: &Daemon) -> Option<Self> {
        let pids = daemon.file("namespace");
        let mut maker = Command::new(daemon.fixture_program())
            .args(["pids", &pids, "pid-namespace", "[", "pid", "first"])
            .args(["forever", "]"])
            .current_dir("/")
            .spawn()
            .unwrap();
        let first = eventually_some("the first process of a namespace", || {
            if maker.try_wait().unwrap().is_some() {
                return Some(None);
            }
            let text = std::fs::read_to_string(&pids).ok()?;
            let pid = text.strip_suffix('\n')?.split(' ').nth(1)?.parse().ok()?;
            Some(Process::now(pid))
        });
        match first.await {
            Some(first) => Some(Self { maker, first }),
            None => {
                skipped("this user cannot make a PID namespace");
                None
            }
        }
    }

    /// A task whose orphan belongs to the namespace and has cleared its environment.
    async fn task(&self, daemon: &Daemon) -> (Fixture, Vec<Process>) {
        let script = format!(
            "ignore TERM enter-namespaces {} \
             double-fork [ setsid clean-exec [ pid orphan ignore TERM forever ] ] forever",
            self.first.pid
        );
        let fixture = daemon.run(&daemon.api().await, &script).await;
        let tree = fixture.processes(&["leader", "orphan"]).await;
        // The process between the two may end after the orphan has begun.
        let is_orphaned = || {
            let stat = tree[1].stat();
            stat.is_some_and(|stat| stat.parent == self.first.pid)
        };
        eventually("an orphan of the namespace", is_orphaned).await;
        (fixture, tree)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // Every process of a namespace dies with its first one.
        self.first.signal(nix::sys::signal::Signal::SIGKILL);
        let ended = self.maker.wait();
        if !thread::panicking() {
            ended.unwrap();
        }
    }
}

/// C4, C14
async fn a_cancel_ends_an_orphan_in_a_foreign_pid_namespace(daemon: Daemon, setting: Setting) {
    let Some(namespace) = Namespace::make(&daemon).await else {
        return;
    };
    let (fixture, tree) = namespace.task(&daemon).await;
    let stopped = daemon.api().await.kill(&fixture.id).await;
    assert_dead(&tree);
    assert_eq!(proof_in(&stopped), setting.proof());
    assert!(namespace.first.is_alive(), "it is not of the task");
}

/// R2
async fn an_orphan_in_a_foreign_pid_namespace_dies_after_its_shim(daemon: Daemon, _: Setting) {
    let Some(namespace) = Namespace::make(&daemon).await else {
        return;
    };
    let (fixture, tree) = namespace.task(&daemon).await;
    assert_dead_after_its_shim(&daemon.api().await, &fixture, &tree).await;
    assert!(namespace.first.is_alive(), "it is not of the task");
}

/// C14, R2
async fn a_cancel_whose_shim_is_killed_ends_an_orphan_in_a_foreign_pid_namespace(
    daemon: Daemon,
    _: Setting,
) {
    let Some(namespace) = Namespace::make(&daemon).await else {
        return;
    };
    let (fixture, tree) = namespace.task(&daemon).await;
    assert_cancelled_after_its_shim(&daemon.api().await, &fixture, &tree).await;
}

/// C14, Y3
async fn a_cancel_by_port_ends_an_orphan_in_a_foreign_pid_namespace(daemon: Daemon, _: Setting) {
    let Some(namespace) = Namespace::make(&daemon).await else {
        return;
    };
    let api = daemon.api().await;
    let script = format!(
        "enter-namespaces {} double-fork [ setsid pid orphan listen 0 forever ] forever",
        namespace.first.pid
    );
    let fixture = daemon.run(&api, &script).await;
    let tree = fixture.processes(&["leader", "orphan"]).await;
    let filter = TaskFilter {
        port: api.listening_port(&fixture.id).await,
        ..Default::default()
    };
    let request = CancelRequest {
        wait: true,
        ..cancel_matching(filter)
    };
    let stopped = api.cancel_one(request).await;
    assert_eq!(stopped.task.unwrap().id, fixture.id);
    assert_dead(&tree);
}
