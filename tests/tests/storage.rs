//! Disks that are full or read-only, and journals that are damaged or somebody else's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, os::unix::fs::PermissionsExt, process::Output};

use heeler_tests::{
    Api, DEADLINE, Daemon, FailingDisk, Process, Refusal, SmallDisk, api, eventually, millis,
    setting, shell,
    v1::{outcome::Result as Ended, *},
};
use nix::sys::signal::Signal::SIGKILL;
use tonic::Code;

fn assert_full<T: std::fmt::Debug>(result: Result<T, tonic::Status>) {
    Refusal::expect(result, Code::ResourceExhausted, "STORAGE_FULL");
}

/// A script that waits for a file outside of the small disk.
fn after(gate: &str, then: &str) -> SpawnRequest {
    shell(format!(
        "while [ ! -e {gate} ]; do sleep 0.05; done; {then}"
    ))
}

async fn state(api: &Api, id: &str) -> TaskState {
    api.task(id).await.state()
}

/// Until the space that the journal has reserved is used up: no start is recorded any more. Each is
/// answered, also one whose beginning was the last fact for which there was space.
async fn until_nothing_is_recorded(api: &Api) {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let refused = api.spawn(shell("true")).await.expect_err("no space");
        let refusal = Refusal::of(&refused);
        assert_eq!(refusal.reason, "STORAGE_FULL", "{refusal:?}");
        if !refusal.metadata.contains_key("task_id") {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "still recorded");
    }
}

/// O14: what fills a disk is often a task, so it can be stopped, and what is finished removed.
#[tokio::test]
async fn on_a_full_disk_tasks_can_be_cancelled_and_removed() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let finished = api.start(shell("head -c 1000000 /dev/zero")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    disk.fill();
    assert_full(api.spawn(shell("true")).await);
    let stopped = api.stop(&sleeper, CancelMode::Force).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    api.remove([&finished]).await.expect("it makes space");
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
    disk.free();
}

/// L4, O14: what was never started is no end of its session.
#[tokio::test]
async fn a_start_that_a_full_disk_refuses_does_not_end_a_wait_for_its_session() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let of_session = |request| SpawnRequest {
        session_id: "s".into(),
        ..request
    };
    let sleeper = api.start(of_session(shell("sleep 1000"))).await.id;
    disk.fill();
    until_nothing_is_recorded(&api).await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (api, request) = (api.clone(), of_session(shell("true")));
        starts.spawn(async move {
            for _ in 0..100 {
                assert_full(api.spawn(request.clone()).await);
            }
        });
    }
    let waiting = async {
        loop {
            let request = WaitRequest {
                session_id: "s".into(),
                timeout: Some(millis(5)),
                ..Default::default()
            };
            let answer = api.wait(request).await.unwrap();
            assert!(!answer.satisfied, "{answer:?}");
        }
    };
    tokio::select! {
        _ = starts.join_all() => {}
        () = waiting => {}
    }
    disk.free();
    api.stop(&sleeper, CancelMode::Force).await;
}

/// O14
#[tokio::test]
async fn on_a_full_disk_calls_are_refused_by_name_and_tasks_go_on() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    let gate = daemon.file("home/gate");
    let ending = api.start(after(&gate, "exit 7")).await.id;

    disk.fill();
    until_nothing_is_recorded(&api).await;
    let known = api.all().await.len();
    assert_full(api.spawn(shell("true")).await);
    assert_full(api.remove([&finished]).await);
    assert_full(api.cancel(api::cancel(&sleeper)).await);
    assert_eq!(state(&api, &sleeper).await, TaskState::Running);
    assert_eq!(api.all().await.len(), known, "nothing was changed");
    assert_eq!(api.output(&finished).await, b"before\n");

    // An end that cannot be recorded waits; it is not lost, and not told.
    fs::write(&gate, "").unwrap();
    daemon.logged("a fact waits to be recorded").await;
    assert_eq!(state(&api, &ending).await, TaskState::Running);

    disk.free();
    let ended = api.ended(&ending).await;
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    let stopped = api.stop(&sleeper, CancelMode::Force).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    api.remove([&finished]).await.expect("there is space again");
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
    api.history().await;
}

/// O14: the task that cannot be captured goes on, and its end says what is missing.
#[tokio::test]
async fn output_that_a_full_disk_cannot_take_fails_the_task_and_no_other() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let (gate, done) = (daemon.file("home/gate"), daemon.file("home/done"));
    let script = format!("echo early; head -c 3000000 /dev/zero; touch {done}; exit 0");
    let task = api.start(after(&gate, &script)).await.id;
    let other = api.start(shell("sleep 1000")).await.id;
    disk.fill();
    fs::write(&gate, "").unwrap();
    eventually("the task is not held up", || fs::exists(&done).unwrap()).await;
    disk.free();
    let ended = api.ended(&task).await;
    assert_eq!(ended.state(), TaskState::Failed, "{ended:?}");
    let outcome = ended.outcome.clone().unwrap();
    assert_eq!(
        outcome.result,
        Some(Ended::ExitCode(0)),
        "its own code stays"
    );
    assert!(format!("{ended:?}").contains("No space left"), "{ended:?}");
    assert_eq!(state(&api, &other).await, TaskState::Running);
}

/// O14: a server that was killed on a full disk comes back on it, and forgets nothing.
#[tokio::test]
async fn a_server_comes_back_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    disk.fill();
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(state(&api, &sleeper).await, TaskState::Running);
    assert_eq!(api.output(&finished).await, b"before\n");
    disk.free();
    api.stop(&sleeper, CancelMode::Force).await;
}

/// O14: what it finds out cannot be recorded, and keeps nobody from making space.
#[tokio::test]
async fn a_server_on_a_full_disk_serves_before_it_has_recorded_what_it_found() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let gate = daemon.file("home/gate");
    let ending = api.start(after(&gate, "exit 7")).await.id;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    let leader = Process::now(api.task(&ending).await.leader.unwrap().pid).unwrap();
    disk.fill();
    until_nothing_is_recorded(&api).await;
    daemon.kill9();
    fs::write(&gate, "").unwrap();
    eventually("an end that no server sees", || !leader.is_alive()).await;
    daemon.restart().await;
    let api = daemon.api().await;
    daemon.logged("serving before these are taken back").await;
    for id in [&ending, &sleeper] {
        assert_eq!(state(&api, id).await, TaskState::Running, "as last known");
    }
    disk.free();
    let ended = api.ended(&ending).await;
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    api.stop(&sleeper, CancelMode::Force).await;
    api.history().await;
}

/// What `heeler serve` says, and that it ends by itself, with an error and without a panic.
fn refused(daemon: &Daemon) -> String {
    let mut command = daemon.command();
    command
        .arg("serve")
        .arg("--state-dir")
        .arg(daemon.state_dir());
    let Output { status, stderr, .. } = command.output().unwrap();
    let told = String::from_utf8(stderr).unwrap();
    assert!(
        status.code().is_some_and(|code| code != 0),
        "{status}: {told}"
    );
    assert!(!told.contains("panicked"), "{told}");
    told
}

/// O14
#[tokio::test]
async fn on_a_read_only_disk_the_server_says_so_and_does_not_start() {
    let Some(disk) = SmallDisk::mount(16) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    daemon.terminate();
    disk.remount("ro");
    let told = refused(&daemon);
    assert!(told.contains("Read-only file system"), "{told}");
    disk.remount("rw");
    daemon.restart().await;
}

fn assert_read_only<T: std::fmt::Debug>(result: Result<T, tonic::Status>) {
    Refusal::expect(result, Code::Unavailable, "STORAGE_READ_ONLY");
}

/// O14: what runs goes on, what is known is told, and nothing is told that could not be recorded.
#[tokio::test]
async fn a_disk_that_becomes_read_only_is_named_and_the_server_stays_up() {
    let Some(disk) = FailingDisk::mount(32) else {
        return;
    };
    let mut daemon = disk.daemon(Daemon::builder());
    daemon.restart().await;
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    let (gate, done) = (daemon.file("home/gate"), daemon.file("home/done"));
    let script = format!("echo late; touch {done}; exit 7");
    let ending = api.start(after(&gate, &script)).await.id;
    let history = api.history().await;

    disk.fail();
    for _ in 0..3 {
        assert_read_only(api.spawn(shell("true")).await);
        assert_read_only(api.cancel(api::cancel(&sleeper)).await);
        assert_read_only(api.remove([&finished]).await);
    }
    assert_eq!(state(&api, &sleeper).await, TaskState::Running);
    assert_eq!(api.output(&finished).await, b"before\n");
    fs::write(&gate, "").unwrap();
    eventually("the task goes on", || fs::exists(&done).unwrap()).await;
    assert_eq!(api.history().await, history, "nothing was told since");

    // To mount it anew, whoever uses it has to go.
    daemon.kill9();
    for process in daemon.processes() {
        process.signal(SIGKILL);
    }
    daemon.no_processes().await;
    disk.mend();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.output(&finished).await, b"before\n");
    for id in [&sleeper, &ending] {
        let task = api.ended(id).await;
        assert_eq!(task.state(), TaskState::Lost, "not made up: {task:?}");
    }
    let events = api.history().await;
    assert_eq!(events[..history.len()], history, "the past is what it was");
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
}

/// A state directory with one finished task, and its journal.
async fn with_history() -> (Daemon, std::path::PathBuf, String) {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("echo kept")).await.id;
    api.ended(&id).await;
    daemon.terminate();
    let journal = daemon.state_dir().join("journal.db");
    (daemon, journal, id)
}

/// R4: every journal that cannot be used is named, and left as it is; put right, all is there.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_that_cannot_be_used_is_named_and_left_alone() {
    let (mut daemon, journal, id) = with_history().await;
    let good = fs::read(&journal).unwrap();
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        bytes
    };
    let cases = [
        ("not a database", b"remember the milk\n".repeat(300)),
        (
            "cut short",
            changed(&|bytes| bytes.truncate(bytes.len() / 2)),
        ),
        (
            "cut in the first page",
            changed(&|bytes| bytes.truncate(50)),
        ),
        ("another program's", changed(&|bytes| bytes[68..72].fill(1))),
        ("of a later version", changed(&|bytes| bytes[62] = 1)),
        (
            "a damaged schema",
            changed(&|bytes| bytes[100..200].fill(0xff)),
        ),
        ("emptied", Vec::new()),
    ];
    for (what, bytes) in cases {
        fs::write(&journal, &bytes).unwrap();
        let told = refused(&daemon);
        let dir = daemon.state_dir();
        assert!(told.contains(dir.to_str().unwrap()), "{what}: {told}");
        assert_eq!(fs::read(&journal).unwrap(), bytes, "{what}: left as it is");
    }
    fs::remove_file(&journal).unwrap();
    assert!(refused(&daemon).contains("no journal"));
    assert!(!journal.exists(), "no silent reset");
    fs::create_dir(&journal).unwrap();
    let told = refused(&daemon);
    assert!(told.contains(journal.to_str().unwrap()), "{told}");
    fs::remove_dir(&journal).unwrap();

    fs::write(&journal, &good).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.output(&id).await, b"kept\n");
}

/// R4: as a user who may not read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_without_permission_is_named() {
    if setting::reruns_as_nobody(concat!(
        module_path!(),
        "::a_journal_without_permission_is_named"
    )) {
        return;
    }
    let (mut daemon, journal, _) = with_history().await;
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o000)).unwrap();
    let told = refused(&daemon);
    assert!(told.contains(journal.to_str().unwrap()), "{told}");
    assert!(told.contains("ermission denied"), "{told}");
    fs::set_permissions(&journal, PermissionsExt::from_mode(0o600)).unwrap();
    daemon.restart().await;
}
