//! Output in memory: a foreground task's output reaches the disk only by a detach or a spill.

use std::{fs, os::unix::fs::MetadataExt};

use heeler_tests::{
    Daemon, SpawnRequestExt as _, eventually, foreground, outcome::exit_code, shell, v1::*,
};

const MIB: u64 = 1 << 20;

/// A foreground request that runs a script.
pub(super) fn foreground_script(script: impl Into<String>) -> SpawnRequest {
    foreground().with_command_of(shell(script))
}

/// The bytes of a task file on disk, without the page of records.
pub(super) fn on_disk(daemon: &Daemon, id: &str) -> u64 {
    let found = fs::metadata(daemon.task_file(id)).unwrap();
    (found.blocks() * 512).saturating_sub(4096)
}

/// The bytes of a memory file.
pub(super) fn in_memory(daemon: &Daemon, id: &str) -> u64 {
    fs::metadata(daemon.memory_file(id)).map_or(0, |found| found.blocks() * 512)
}

/// F9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_finished_foreground_task_leaves_no_output_on_disk_and_stays_readable() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(foreground_script("seq 1 20000; exit 3")).await;
    let mut attachment = api.attach(&task.id).await;
    assert_eq!(attachment.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(on_disk(&daemon, &task.id), 0, "output on disk");
    let expected: String = (1..=20000).map(|number| format!("{number}\n")).collect();
    assert!(api.output(&task.id).await == expected.as_bytes());
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert!(
        api.output(&task.id).await == expected.as_bytes(),
        "after a crash"
    );
    assert_eq!(on_disk(&daemon, &task.id), 0);
    let ended = api.task(&task.id).await;
    assert_eq!(exit_code(&ended), 3);
    api.remove([&*task.id]).await.unwrap();
    assert_eq!(
        in_memory(&daemon, &task.id),
        0,
        "the memory file of a removed task"
    );
}

/// F10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn past_a_mebibyte_a_foreground_task_spills_its_complete_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(foreground_script(
            "seq -f %015.0f 1 400000; echo up >&2; exec sleep 1000",
        ))
        .await;
    let mut attachment = api.attach(&task.id).await;
    attachment.until("up\n").await;
    assert_eq!(in_memory(&daemon, &task.id), 0, "output left in memory");
    assert!(on_disk(&daemon, &task.id) > 6 * MIB);
    let expected: String = (1..=400_000).map(|n| format!("{n:015}\n")).collect();
    let text = String::from_utf8(api.output(&task.id).await).unwrap();
    assert!(text.replace("up\n", "") == expected, "every byte, in order");
    let task = api.task(&task.id).await;
    assert_eq!(
        task.placement(),
        Placement::Foreground,
        "a spill does not detach"
    );
}

/// F9, F2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_moves_the_output_to_the_disk() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "seq 1 5000; echo up; read -r _ < {}; seq 5001 6000",
        daemon.file("gate")
    );
    let task = api.start(foreground_script(script)).await;
    let mut attachment = api.attach(&task.id).await;
    attachment.until("up\n").await;
    assert_eq!(on_disk(&daemon, &task.id), 0, "on disk before the detach");
    assert!(in_memory(&daemon, &task.id) > 0);
    api.detach_one(&task.id).await;
    let spilled = || in_memory(&daemon, &task.id) == 0 && on_disk(&daemon, &task.id) > 0;
    eventually("the output on disk", spilled).await;
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
async fn orphan_policy_abandon_ends_the_task_with_its_leader_and_names_the_abandoned() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default()
        .in_foreground()
        .with_orphan_policy(OrphanPolicy::Abandon);
    let up = daemon.file("up");
    let script = format!("fork [ pid child touch {up} forever ] await {up} print bye exit 7");
    let fixture = daemon.run_as(&api, request, &script).await;
    let ended = api.attach(&fixture.id).await.ended().await;
    assert_eq!(
        ended.reason(),
        AttachEndReason::Finished,
        "the task ends with its leader"
    );
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(exit_code(&task), 7);
    assert_eq!(api.lines(&fixture.id).await, ["bye"]);
    let child = fixture.process("child").await;
    let abandoned: Vec<i32> = task.abandoned.iter().map(|process| process.pid).collect();
    assert_eq!(abandoned, [child.pid]);
    assert!(child.is_alive(), "an abandoned process was killed");
    // An abandoned process is no longer the task's, so no cancel reaches it.
    let result = api.kill(&fixture.id).await;
    assert_eq!(result.outcome(), CancelOutcome::AlreadyFinished);
    assert!(child.is_alive());
    child.signal(nix::sys::signal::Signal::SIGKILL);
    eventually("the end of the child", || child.is_gone()).await;
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_deleted_state_directory_leaves_nothing_in_memory() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(foreground_script("echo kept")).await;
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
    let task = api.start(foreground_script("echo short")).await;
    api.attach(&task.id).await.ended().await;
    let (directory, file) = (daemon.memory_dir(), daemon.memory_file(&task.id));
    daemon.terminate();
    assert!(file.exists(), "a finished task keeps its output");
    daemon.restart().await;
    daemon.api().await.remove([&*task.id]).await.unwrap();
    daemon.terminate();
    assert!(!directory.exists());
}

/// F9, N1: another user can guess the name of the memory directory and create it first.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_memory_directory_of_another_user_is_neither_used_nor_read() {
    if !nix::unistd::geteuid().is_root() {
        return heeler_tests::skipped("only root can give a directory away");
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
        "output of another user was read"
    );
    let task = api.start(foreground_script("echo real")).await;
    let mut attachment = api.attach(&task.id).await;
    assert_eq!(attachment.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(attachment.output, b"real\n");
    assert!(on_disk(&daemon, &task.id) > 0, "not on disk");
}
