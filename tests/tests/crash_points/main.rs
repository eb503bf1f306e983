//! Crash points: the server dies at each named point, and the next one continues. After each death no
//! task exists twice, none is lost, no process is left, and every event is delivered once.
//!
//! A binary of its own: it needs a daemon that was built with crash points.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cancel;
mod detach;
mod end;
mod input;
mod limit;
mod matching;
mod owner;
mod panic;
mod queue;
mod recovery;
mod remove;
mod restart;
mod spawn;
mod upkeep;
mod webhook;
mod work;

use std::{collections::BTreeSet, fs, path::Path, process::Command};

use heeler_tests::{Daemon, Follower, binary};

/// Makes one test per row `name => "point", argument;` of a function `async fn(&str, argument)`.
macro_rules! at_each_point {
    ($scene:ident: $($name:ident => $point:literal, $expected:expr;)*) => { $(
        #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
        async fn $name() {
            if heeler_tests::crash::points_are_built_in() {
                $scene($point, $expected).await;
            } else {
                heeler_tests::skipped("this build has no crash points");
            }
        }
    )* };
}
pub(crate) use at_each_point;

/// The number of times that the command of a test has run.
fn runs(daemon: &Daemon) -> usize {
    daemon.line_count("ran")
}

/// Starts a daemon that will die at the point, and a watcher of its events.
async fn doomed(point: &str) -> (Daemon, Follower) {
    let mut daemon = Daemon::builder().prepare();
    daemon.die_at(point);
    daemon.restart().await;
    let follower = Follower::of(daemon.address());
    (daemon, follower)
}

/// Waits for its death at the point, and restarts it without one.
async fn restart_after(daemon: &mut Daemon, point: &str) {
    let name = point.split(':').next().unwrap();
    assert_eq!(daemon.died(), name);
    daemon.live_on();
    daemon.restart().await;
}

/// R3
#[test]
fn every_crash_point_of_the_server_has_a_test() {
    let server = points_in(&binary::workspace().join("server/src"), "crash::point(\"");
    assert!(
        server.len() > 10,
        "the crash points were not found: {server:?}"
    );
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crash_points");
    let tested = points_in(&here, "=> \"");
    let untested: Vec<_> = server.difference(&tested).collect();
    assert!(
        untested.is_empty(),
        "tests/crash_points has no row for {untested:?}"
    );
}

/// The texts between `before` and the next quotation mark or colon, in every file.
fn points_in(dir: &Path, before: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.append(&mut points_in(&path, before));
        } else if path.extension().is_some_and(|extension| extension == "rs")
            && path.file_name().is_some_and(|name| name != "crash.rs")
        {
            let text = fs::read_to_string(path).unwrap();
            let rest = text.split(before).skip(1);
            found.extend(rest.map(|rest| rest.split(['"', ':']).next().unwrap().to_owned()));
        }
    }
    found
}

/// A release builds the package `heeler` alone.
#[test]
fn a_build_of_the_heeler_package_has_no_crash_points() {
    let features = |of: &[&str]| {
        let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(binary::workspace())
            .args(["tree", "--offline", "--edges", "normal,features"])
            .args(of)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let (named, wanted) = ("crash-points", ["--package", "heeler"]);
    assert!(!features(&wanted).contains(named));
    assert!(
        features(&["--package", "heeler-tests"]).contains(named),
        "the feature was not found"
    );
}
