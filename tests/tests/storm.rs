//! Nothing is lost, however often the server dies: `HEELER_STORM_KILLS` and `HEELER_STORM_SEED` make
//! the storms longer, and bring one back.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Write;

use heeler_tests::{
    Setting,
    crash::points_are_there,
    skipped,
    storm::{Deaths, Storm},
};
use tokio::sync::Mutex;

/// Each storm has the machine to itself: it is the load.
static SKY: Mutex<()> = Mutex::const_new(());

async fn rage(setting: Setting, deaths: Deaths, kills: u64) {
    let Some(daemon) = setting.start().await else {
        return;
    };
    let _alone = SKY.lock().await;
    let began = std::time::Instant::now();
    let figures = Storm::new(deaths, kills).over(daemon).await;
    let took = began.elapsed().as_secs();
    // Not by the macro: figures are to be seen when all is well, too.
    let told = format!("\n{setting:?} {figures}\nin {took} s\n");
    std::io::stderr().write_all(told.as_bytes()).unwrap();
    assert!(figures.discrepancies.is_empty(), "{figures}");
}

/// R1, R3, S9, C13, E2, O11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_at_any_moment_loses_nothing() {
    rage(Setting::Cgroup, Deaths::AtAnyMoment, 120).await;
}

/// The same without cgroups.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_does_one_on_the_subreaper() {
    rage(Setting::Subreaper, Deaths::AtAnyMoment, 40).await;
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shims_that_are_killed_too_take_nothing_with_them_but_their_own_ends() {
    rage(Setting::Cgroup, Deaths::WithShims, 50).await;
}

/// R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nor_do_they_on_the_subreaper() {
    rage(Setting::Subreaper, Deaths::WithShims, 50).await;
}

/// R3: a walk over the crash points.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_at_one_point_after_the_other_loses_nothing() {
    match points_are_there() {
        true => rage(Setting::Cgroup, Deaths::AtAnyPoint, 200).await,
        false => skipped("this build has no crash points"),
    }
}
