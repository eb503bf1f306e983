//! Where a foreground task's output is: in memory until it is detached or becomes too large.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::MetadataExt};

use heeler_tests::{
    Daemon, eventually, foreground, held, shell,
    v1::{outcome::Result as Ended, *},
};

const MIB: u64 = 1 << 20;

/// A script in the foreground.
fn holding(script: impl Into<String>) -> SpawnRequest {
    SpawnRequest {
        command: shell(script).command,
        ..held()
    }
}

/// How much of a task's output is on the disk: its file without the page of records.
fn on_disk(daemon: &Daemon, id: &str) -> u64 {
    let found = fs::metadata(daemon.task_file(id)).unwrap();
    (found.blocks() * 512).saturating_sub(4096)
}

/// How much of it is in memory.
fn in_memory(daemon: &Daemon, id: &str) -> u64 {
    fs::metadata(daemon.memory_file(id)).map_or(0, |found| found.blocks() * 512)
}

/// F9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_task_that_ends_leaves_no_output_on_disk_and_can_be_read() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(holding("seq 1 20000; exit 3")).await;
    let mut hold = api.attach(&task.id).await;
    assert_eq!(hold.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(on_disk(&daemon, &task.id), 0, "not a block");
    let expected: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    assert!(api.output(&task.id).await == expected.as_bytes());
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert!(
        api.output(&task.id).await == expected.as_bytes(),
        "also after a crash"
    );
    assert_eq!(on_disk(&daemon, &task.id), 0);
    let ended = api.task(&task.id).await;
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(3)));
    api.remove([&*task.id]).await.unwrap();
    assert_eq!(in_memory(&daemon, &task.id), 0, "forgotten");
}

/// F10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn past_a_mebibyte_a_foreground_task_spills_and_nothing_is_missing() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(holding(
            "seq -f %015.0f 1 400000; echo up >&2; exec sleep 1000",
        ))
        .await;
    let mut hold = api.attach(&task.id).await;
    hold.until("up\n").await;
    assert_eq!(in_memory(&daemon, &task.id), 0, "all of it is on disk");
    assert!(on_disk(&daemon, &task.id) > 6 * MIB);
    let expected: String = (1..=400_000).map(|n| format!("{n:015}\n")).collect();
    let text = String::from_utf8(api.output(&task.id).await).unwrap();
    assert!(text.replace("up\n", "") == expected, "every byte, in order");
    let task = api.task(&task.id).await;
    assert_eq!(task.placement(), Placement::Foreground, "it is held still");
}

/// F9, F2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_takes_the_output_to_the_disk() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "seq 1 5000; echo up; read -r _ < {}; seq 5001 6000",
        daemon.file("gate")
    );
    let task = api.start(holding(script)).await;
    let mut hold = api.attach(&task.id).await;
    hold.until("up\n").await;
    assert_eq!(on_disk(&daemon, &task.id), 0, "not yet");
    assert!(in_memory(&daemon, &task.id) > 0);
    api.detach_one(&task.id).await;
    let spilled = || in_memory(&daemon, &task.id) == 0 && on_disk(&daemon, &task.id) > 0;
    eventually("its output on disk", spilled).await;
    daemon.kill9();
    gate.open();
    daemon.restart().await;
    let api = daemon.api().await;
    api.ended(&task.id).await;
    let lines = api.lines(&task.id).await;
    let numbers: Vec<String> = (1..=6000).map(|number| number.to_string()).collect();
    let lines: Vec<String> = lines.into_iter().filter(|line| line != "up").collect();
    assert_eq!(lines, numbers);
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_abandon_a_task_ends_with_its_leader_and_names_its_orphans() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest {
        orphan_policy: OrphanPolicy::Abandon.into(),
        ..foreground(SpawnRequest::default())
    };
    let up = daemon.file("up");
    let script = format!("fork [ pid child touch {up} forever ] await {up} print bye exit 7");
    let fixture = daemon.run_as(&api, request, &script).await;
    let ended = api.attach(&fixture.id).await.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished, "all at once");
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    assert_eq!(api.lines(&fixture.id).await, ["bye"]);
    let child = fixture.process("child").await;
    let left: Vec<i32> = task
        .abandoned_processes
        .iter()
        .map(|left| left.pid)
        .collect();
    assert_eq!(left, [child.pid]);
    assert!(child.is_alive(), "left to itself");
    // Cancel means gone, of what is the task's; this one is not any more.
    let result = api.stop(&fixture.id, CancelMode::Force).await;
    assert_eq!(result.outcome(), CancelOutcome::AlreadyFinished);
    assert!(child.is_alive());
    child.signal(nix::sys::signal::Signal::SIGKILL);
    eventually("its end", || child.is_gone()).await;
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deleted_state_directory_leaves_nothing_in_memory() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(holding("echo kept")).await;
    assert_eq!(
        api.attach(&task.id).await.ended().await.reason(),
        AttachEndReason::Finished
    );
    let before = daemon.memory_dir();
    assert!(before.join(&task.id).exists());
    daemon.kill9();
    fs::remove_dir_all(daemon.state_dir()).unwrap();
    daemon.restart().await;
    assert!(!before.exists(), "the next server has removed it");
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_leaves_removes_its_memory_directory_unless_output_is_kept() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(holding("echo short")).await;
    api.attach(&task.id).await.ended().await;
    let (directory, file) = (daemon.memory_dir(), daemon.memory_file(&task.id));
    daemon.terminate();
    assert!(file.exists(), "a finished task keeps its output");
    daemon.restart().await;
    daemon.api().await.remove([&*task.id]).await.unwrap();
    daemon.terminate();
    assert!(!directory.exists());
}

/// F9, N1: whoever knows the name of the directory in memory can make it before the daemon does.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_directory_in_memory_that_is_anothers_is_neither_used_nor_read() {
    if !nix::unistd::geteuid().is_root() {
        return heeler_tests::skipped("a directory of another user takes root to make");
    }
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let before = api.start(shell("echo before")).await;
    api.ended(&before.id).await;
    let planted = daemon.memory_dir();
    fs::create_dir(&planted).unwrap();
    fs::write(planted.join(&before.id), vec![0; 4096]).unwrap();
    std::os::unix::fs::chown(&planted, Some(65534), None).unwrap();
    assert_eq!(
        api.lines(&before.id).await,
        ["before"],
        "not what was planted"
    );
    let task = api.start(holding("echo real")).await;
    let mut hold = api.attach(&task.id).await;
    assert_eq!(hold.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(hold.output, b"real\n");
    assert!(
        on_disk(&daemon, &task.id) > 0,
        "where nobody else can write"
    );
}
