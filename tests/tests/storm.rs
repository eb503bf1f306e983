//! Storms: nothing is lost, however often the server dies. `HEELER_STORM_KILLS` sets the length of a
//! storm, `HEELER_STORM_SEED` repeats one.
//!
//! A binary of its own, whose tests run one after the other: a storm loads the whole machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;

use heeler_tests::{
    Daemon, Setting, SmallDisk,
    crash::points_are_built_in,
    skipped,
    storm::{Deaths, Figures, Ingredient, Storm},
};
use tokio::sync::Mutex;

/// One storm at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

async fn run(setting: Setting, deaths: Deaths, kills: u64) {
    let Some(daemon) = setting.start().await else {
        return;
    };
    let _alone = ONE_AT_A_TIME.lock().await;
    let storm = Storm::new(deaths, kills);
    report(setting, storm.over(daemon)).await;
}

/// Runs a storm with every hardship, or those of `HEELER_STORM_WITH`.
async fn run_hard(setting: Setting, kills: u64) {
    let _alone = ONE_AT_A_TIME.lock().await;
    let storm = Storm::new(Deaths::AtAnyMoment, kills).with(Ingredient::chosen());
    let Some(disk) = SmallDisk::mount(storm.disk_size()) else {
        return;
    };
    let containment = match setting {
        Setting::Cgroup => "cgroup",
        Setting::Subreaper | Setting::Unprivileged => "subreaper",
    };
    let mut daemon = disk.daemon(Daemon::builder().containment(containment));
    daemon.restart().await;
    report(setting, storm.over_disk(daemon, Some(&disk))).await;
}

async fn report(setting: Setting, storm: impl Future<Output = Figures>) {
    let began = std::time::Instant::now();
    let figures = storm.await;
    let took = began.elapsed().as_secs();
    // Not by `eprintln!`, which the test harness captures: figures are shown on success too.
    let report = format!("\n{setting:?} {figures}\nin {took} s\n");
    std::io::stderr().write_all(report.as_bytes()).unwrap();
    assert!(figures.discrepancies.is_empty(), "{figures}");
}

/// R1, R3, S9, C13, E2, O11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_at_any_moment_on_cgroups_loses_nothing() {
    run(Setting::Cgroup, Deaths::AtAnyMoment, 80).await;
}

/// R1, R3, S9, C13, E2, O11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_at_any_moment_on_the_subreaper_loses_nothing() {
    run(Setting::Subreaper, Deaths::AtAnyMoment, 40).await;
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_shims_on_cgroups_lose_only_their_own_ends() {
    run(Setting::Cgroup, Deaths::WithShims, 50).await;
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_shims_on_the_subreaper_lose_only_their_own_ends() {
    run(Setting::Subreaper, Deaths::WithShims, 50).await;
}

/// R3: a random sequence of crash points.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_at_random_crash_points_loses_nothing() {
    match points_are_built_in() {
        true => run(Setting::Cgroup, Deaths::AtAnyPoint, 160).await,
        false => skipped("this build has no crash points"),
    }
}

/// R1, R2, R3, S9, S11, C13, E2, O14: on full disks, at the limit of processes, with stopped and killed
/// shims, slow readers and half-open calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_hardships_on_cgroups_loses_nothing() {
    run_hard(Setting::Cgroup, 20).await;
}

/// R1, R2, R3, S9, S11, C13, E2, O14
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_hardships_on_the_subreaper_loses_nothing() {
    run_hard(Setting::Subreaper, 20).await;
}
