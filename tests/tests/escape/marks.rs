//! Processes that have lost one of their marks, after the death of their shim: programs that set a title,
//! programs that no other process of the user may read, programs that clear their environment, and
//! programs that lower their limits.

use heeler_tests::{Daemon, Fixture, Process, Setting, in_each_setting};

use super::{assert_cancelled_after_its_shim, assert_dead_after_its_shim};

in_each_setting! {
    hidden_processes_die_after_their_shim,
    a_cancel_whose_shim_is_killed_ends_hidden_processes,
}

const HIDDEN: &str = "ignore TERM \
    fork [ setsid overwrite-environment pid titled forever ] \
    fork [ setsid undumpable pid unreadable forever ] \
    double-fork [ setsid clean-exec [ pid bare forever ] ] \
    fork [ setsid clean-exec [ undumpable fork [ setsid pid grandchild forever ] forever ] ] \
    double-fork [ setsid lower-limits pid lowered forever ] \
    forever";

async fn tree(daemon: &Daemon) -> (Fixture, Vec<Process>) {
    let fixture = daemon.run(&daemon.api().await, HIDDEN).await;
    let names = [
        "leader",
        "titled",
        "unreadable",
        "bare",
        "grandchild",
        "lowered",
    ];
    let tree = fixture.processes(&names).await;
    let titled = tree[1].pid;
    let environ = std::fs::read(format!("/proc/{titled}/environ")).unwrap();
    assert!(!environ.is_empty() && !environ.contains(&b'='), "a title");
    (fixture, tree)
}

/// R2
async fn hidden_processes_die_after_their_shim(daemon: Daemon, _: Setting) {
    let (fixture, tree) = tree(&daemon).await;
    assert_dead_after_its_shim(&daemon.api().await, &fixture, &tree).await;
}

/// C14, R2
async fn a_cancel_whose_shim_is_killed_ends_hidden_processes(daemon: Daemon, _: Setting) {
    let (fixture, tree) = tree(&daemon).await;
    assert_cancelled_after_its_shim(&daemon.api().await, &fixture, &tree).await;
}
