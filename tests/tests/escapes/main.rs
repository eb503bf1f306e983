//! Escapes: every trick by which a process might outlive the cancel of its task, on every containment,
//! with the shim alive and killed, as root and as a user without rights.
//!
//! `trick` has the tricks, `attempt` tries one and judges it from outside, `table` is the table in
//! docs/RELIABILITY.md. A task may say that it does not know. It must never say that a tree is gone of
//! which a process lives.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod attempt;
mod table;
mod trick;

use std::collections::BTreeMap;

use heeler_tests::{
    Daemon, Setting,
    containment::{Delegated, rerun_as_nobody},
};

use attempt::{Ground, Shim, Verdict};
use table::Column;

/// Tries every trick of a column, writes the report, and fails if one has escaped unseen.
async fn run(daemon: Daemon, setting: Setting, column: Column) {
    let ground = Ground::new(&daemon, setting).await;
    let mut report: BTreeMap<String, String> = BTreeMap::new();
    let mut faults = Vec::new();
    for trick in trick::all() {
        for shim in [Shim::Alive, Shim::Killed] {
            let verdict = ground.attempt(&trick, shim).await;
            eprintln!("{}, shim {shim:?}: {verdict:?}", trick.name);
            if let Verdict::Fault(fault) = &verdict {
                faults.push(format!("{}, shim {shim:?}: {fault}", trick.name));
            }
            report.insert(table::key(&trick, shim), verdict.to_string());
        }
    }
    table::write_report(column, &report);
    assert!(faults.is_empty(), "{column:?}: {faults:#?}");
}

/// The tests of the user run as that user: see `containment`.
fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// C1, C4, C5, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_escape_is_told_as_gone_on_cgroups() {
    if is_root()
        && let Some(daemon) = Setting::Cgroup.start().await
    {
        run(daemon, Setting::Cgroup, Column::CgroupRoot).await;
    }
}

/// C1, C4, C5, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_escape_is_told_as_gone_on_the_subreaper() {
    if is_root()
        && let Some(daemon) = Setting::Subreaper.start().await
    {
        run(daemon, Setting::Subreaper, Column::SubreaperRoot).await;
    }
}

/// C1, C4, C5, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_escape_is_told_as_gone_on_cgroups_of_a_user() {
    if !is_root() {
        if let Some(daemon) = Setting::Cgroup.start().await {
            run(daemon, Setting::Cgroup, Column::CgroupUser).await;
        }
        return;
    }
    let name = "no_escape_is_told_as_gone_on_cgroups_of_a_user";
    if let Some(cgroup) = Delegated::to_nobody() {
        let name = format!("{}::{name}", module_path!());
        let output = rerun_as_nobody(&name, Some(&cgroup));
        table::take_report(Column::CgroupUser, &output.expect("root"));
    }
}

/// C1, C4, C5, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_escape_is_told_as_gone_on_the_subreaper_of_a_user() {
    let name = "no_escape_is_told_as_gone_on_the_subreaper_of_a_user";
    match rerun_as_nobody(&format!("{}::{name}", module_path!()), None) {
        Some(output) => table::take_report(Column::SubreaperUser, &output),
        None => {
            if let Some(daemon) = Setting::Unprivileged.start().await {
                run(daemon, Setting::Unprivileged, Column::SubreaperUser).await;
            }
        }
    }
}
