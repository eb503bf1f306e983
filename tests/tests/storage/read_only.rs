//! Disks that are or become read-only.

use std::{
    fs,
    time::{Duration, Instant},
};

use heeler_tests::{
    Daemon, FailingDisk, Process, Refusal, SmallDisk, eventually, outcome::proof_in, shell,
    task_file::shim_of, v1::*, waiting::STEP,
};
use nix::sys::signal::Signal::SIGKILL;
use tonic::Code;

use super::{
    disk::{after, state},
    refused,
};

/// O14
#[tokio::test]
async fn a_server_on_a_read_only_disk_reports_it_and_does_not_start() {
    let Some((disk, mut daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
    daemon.terminate();
    disk.remount("ro");
    let stderr = refused(&daemon).await;
    assert!(stderr.contains("Read-only file system"), "{stderr}");
    disk.remount("rw");
    daemon.restart().await;
}

fn assert_read_only<T: std::fmt::Debug>(result: Result<T, tonic::Status>) {
    Refusal::expect(result, Code::Unavailable, "STORAGE_READ_ONLY");
}

/// O14: tasks go on, reads are answered, and no event is announced without a record.
#[tokio::test]
async fn on_a_disk_that_becomes_read_only_calls_are_refused_by_name_and_the_server_stays_up() {
    let Some(disk) = FailingDisk::mount(32) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("exec sleep 1000")).await;
    let leader = Process::now(sleeper.leader.unwrap().pid).unwrap();
    let sleeper = sleeper.id;
    let (gate, done) = (daemon.file("home/gate"), daemon.file("home/done"));
    let script = format!("echo late; touch {done}; exit 7");
    let ending = api.start(after(&gate, &script)).await.id;
    let history = api.history().await;

    disk.fail();
    for _ in 0..3 {
        assert_read_only(api.spawn(shell("true")).await);
        assert_read_only(api.remove([&finished]).await);
    }
    // The stop takes effect, though neither the server nor the shim can record it.
    let stopped = api.kill(&sleeper).await;
    assert!(!leader.is_alive(), "{stopped:?}");
    let unrecorded = stopped.unrecorded.as_ref().unwrap();
    assert_eq!(unrecorded.reason(), ErrorReason::StorageReadOnly);
    proof_in(&stopped);
    assert_eq!(state(&api, &sleeper).await, TaskState::Running);
    assert_eq!(api.output(&finished).await, b"before\n");
    fs::write(&gate, "").unwrap();
    eventually("the task to go on", || fs::exists(&done).unwrap()).await;
    assert_eq!(api.history().await, history, "an event without a record");

    // A new mount needs every user of the disk gone.
    daemon.kill9();
    for process in daemon.processes() {
        process.signal(SIGKILL);
    }
    daemon.no_processes().await;
    disk.repair();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.output(&finished).await, b"before\n");
    for id in [&sleeper, &ending] {
        let task = api.ended(id).await;
        assert_eq!(task.state(), TaskState::Lost, "an invented end: {task:?}");
    }
    let events = api.history().await;
    assert_eq!(
        events[..history.len()],
        history,
        "earlier events have changed"
    );
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
}

/// The silence after which a shim that does not answer a kill is ended, and a little more.
const SILENCE: Duration = Duration::from_secs(15);

/// C14, O14: it knows the exit code, and records it if the disk works again.
#[tokio::test]
async fn a_shim_that_waits_for_a_failing_disk_is_not_taken_for_a_silent_one() {
    let Some(disk) = FailingDisk::mount(32) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let leader = Process::now(task.leader.unwrap().pid).unwrap();
    let shim = shim_of(&leader);
    disk.fail();
    let stopped = api.kill(&task.id).await;
    assert!(stopped.unrecorded.is_some() && !leader.is_alive());
    let end = Instant::now() + SILENCE;
    while Instant::now() < end {
        assert!(shim.is_alive(), "{}", daemon.log());
        tokio::time::sleep(STEP).await;
    }
    daemon.kill9();
    for process in daemon.processes() {
        process.signal(SIGKILL);
    }
    daemon.no_processes().await;
    disk.repair();
    daemon.restart().await;
}
