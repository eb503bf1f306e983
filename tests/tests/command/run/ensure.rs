//! `--on-held ensure`: an equal task that runs already is used instead of a new one.

use heeler_tests::{Daemon, v1::*};
use nix::sys::signal::Signal;

use super::{ended, reads, run, send};

const ENSURE: [&str; 4] = ["--exclusive", "dev", "--on-held", "ensure"];

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_prints_the_id_of_the_equal_task_and_names_a_difference() {
    let daemon = Daemon::start().await;
    let task = [&ENSURE[..], &["--", "sleep", "60"]].concat();
    let first = daemon.spawned(&task).await;
    let spawn = [&["spawn"], &task[..]].concat();
    let again = daemon.heeler(&spawn).await.ok();
    assert_eq!(again.stdout, format!("{first}\n"));
    assert!(again.stderr.contains("nothing was started"), "{again:?}");
    let other = [&["spawn"], &ENSURE[..], &["--", "sleep", "61"]].concat();
    let refused = daemon.heeler(&other).await;
    assert_eq!(refused.stdout, "");
    assert!(refused.code != Some(0), "{refused:?}");
    assert!(refused.stderr.contains("spec.argv.args[1]"), "{refused:?}");
    assert!(refused.stderr.contains(&first), "{refused:?}");
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_attaches_to_an_equal_task_and_its_interruption_stops_nothing() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "echo ready; while :; do sleep 60; done";
    let args = [&ENSURE[..], &["--rm", "-c", script]].concat();
    let mut first = run(&daemon, &args);
    reads(first.stdout.as_mut().unwrap(), "ready\n").await;
    let mut second = run(&daemon, &args);
    reads(second.stdout.as_mut().unwrap(), "ready\n").await;
    send(&second, Signal::SIGINT);
    let result = ended(second).await;
    assert_eq!(result.code, Some(130), "{result:?}");
    assert!(result.stderr.contains("nothing was started"), "{result:?}");
    let task = api.all().await.remove(0);
    assert_eq!(task.state(), TaskState::Running);
    send(&first, Signal::SIGINT);
    ended(first).await;
    assert!(api.all().await.is_empty(), "its own run deletes it");
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn run_prints_the_id_of_an_equal_task_in_the_background() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let args = [&ENSURE[..], &["-c", "echo ready; sleep 60"]].concat();
    let mut first = run(&daemon, &args);
    reads(first.stdout.as_mut().unwrap(), "ready\n").await;
    let task = api.all().await.remove(0);
    api.detach_one(&task.id).await;
    ended(first).await;
    let second = ended(run(&daemon, &args)).await;
    let found = (second.code, &*second.stdout);
    let expected = format!("ready\n{}\n", task.id);
    assert_eq!(found, (Some(0), &*expected), "{second:?}");
}
