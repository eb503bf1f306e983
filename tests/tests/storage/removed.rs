//! Files of the state directory that are removed while the server uses them.

use std::fs;

use heeler_tests::{
    Daemon, Process, Refusal, SpawnRequestExt as _, argv, disk::files_below, eventually,
    outcome::proof_in, output, queued, request, shell, v1::*,
};

use super::{assert_sound, refused};

/// R6: the directory itself is locked, not a file in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_removed_lock_file_lets_no_second_server_in() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    fs::remove_file(daemon.state_dir().join("lock")).unwrap();
    // At another address, so that the lock alone can refuse it.
    let (state, address) = (daemon.state_dir(), daemon.file("other.sock"));
    let listen = format!("unix:{address}");
    let stderr = daemon.refused_start(&state, &["--listen", &listen]).await;
    assert!(stderr.contains("another server uses"), "{stderr}");
    assert_sound(&daemon, &api).await;
}

/// O14, C14, R4: the processes are stopped and that is told; nothing hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn when_the_state_directory_is_removed_every_call_is_answered() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let mut sleepers = Vec::new();
    for _ in 0..3 {
        let task = api.start(shell("exec sleep 1000")).await;
        let leader = Process::now(task.leader.unwrap().pid).unwrap();
        sleepers.push((task.id, leader));
    }
    fs::remove_dir_all(daemon.state_dir()).unwrap();
    for (id, leader) in &sleepers[..2] {
        let result = api.kill(id).await;
        proof_in(&result);
        assert!(!leader.is_alive(), "{result:?}");
        assert_eq!(result.task.unwrap().state(), TaskState::Cancelled);
    }
    let refused = api.spawn(shell("true")).await.expect_err("no directory");
    Refusal::of(&refused);
    assert_eq!(api.all().await.len(), 5, "four tasks and a failed start");
    for id in [&finished, &sleepers[0].0] {
        let read = api.read(request::read(id, 0)).await;
        let is_gap = |chunk: &OutputChunk| output::gap(chunk).is_some();
        assert!(read.is_err() || read.unwrap().chunks.iter().all(is_gap));
    }
    let (id, leader) = &sleepers[2];
    assert!(leader.is_alive());
    assert_eq!(api.task(id).await.state(), TaskState::Running);
    api.kill(id).await;
    assert!(!leader.is_alive());
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

/// R2, R3: a missing task file does not prove that the leader never ran.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_that_removes_the_state_directory_and_its_shim_leaves_no_process() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (server, state) = (daemon.pid(), daemon.state_dir());
    let pids = daemon.path("pids");
    // The server is stopped while the records of the start go, if the leader is quicker than it.
    let script = format!(
        "kill -STOP {server}
        echo $$ >> {pids}
        (setsid sleep 1000 & echo $! >> {pids})
        rm -rf {state}
        kill -KILL $PPID
        kill -CONT {server}
        exec sleep 1000",
        pids = pids.display(),
        state = state.display(),
    );
    let answer = api.spawn(shell(&script)).await;
    let two_pids = || fs::read_to_string(&pids).is_ok_and(|text| text.lines().count() == 2);
    eventually("the tree", two_pids).await;
    let tasks = api.all().await;
    assert_eq!(tasks.len(), 1, "{answer:?}");
    let ended = api.ended(&tasks[0].id).await;
    let is_lost = matches!(ended.state(), TaskState::Lost | TaskState::Failed);
    assert!(is_lost, "{ended:?}");
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let process = Process::now(pid.parse().unwrap());
        let is_alive = process.is_some_and(|process| process.is_alive());
        assert!(!is_alive, "{pid} lives after {ended:?}");
    }
    assert!(!daemon.log().contains("panicked"), "{}", daemon.log());
}

const SECRET: &str = "xyzzy-plugh-5309";

/// Asserts that no byte of the state directory holds the secret.
fn assert_no_secret(daemon: &Daemon, when: &str) {
    for path in files_below(&daemon.state_dir()) {
        let bytes = fs::read(&path).unwrap_or_default();
        let found = bytes
            .windows(SECRET.len())
            .any(|part| part == SECRET.as_bytes());
        assert!(!found, "{when}: the secret is in {}", path.display());
    }
}

/// N4, L9: the values of variables are on disk only while a task waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_its_start_or_its_removal_no_file_has_a_value_of_a_variable() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let secret = |request: SpawnRequest| request.with_env([("TOKEN", SECRET)]);
    let long = format!("{SECRET}{}", "x".repeat(20_000));
    let long = |request: SpawnRequest| request.with_env([("TOKEN", &*long)]);
    let idempotent = |id: &str| argv(["true"]).with_request_id(id);
    let at_once = [
        secret(argv(["true"])),
        secret(idempotent("a")),
        long(idempotent("b")),
    ];
    let mut ids = Vec::new();
    for request in at_once {
        ids.push(api.start(request).await.id);
        api.ended(ids.last().unwrap()).await;
    }
    assert_no_secret(&daemon, "tasks that did not wait");

    api.set_queue("q", None, Some(true)).await.unwrap();
    let waiting = [
        secret(queued("q", argv(["true"]))),
        long(queued("q", argv(["true"]))),
        secret(queued("q", idempotent("c"))),
        long(queued("q", idempotent("d"))),
    ];
    let first = ids.len();
    for request in waiting {
        ids.push(api.start(request).await.id);
    }
    let cancelled = ids.pop().unwrap();
    api.kill(&cancelled).await;
    api.set_queue("q", None, Some(false)).await.unwrap();
    for id in &ids[first..] {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
    }
    // It is deleted after the start is recorded.
    let is_deleted = || files_below(&daemon.state_dir().join("waiting")).is_empty();
    eventually("the requests to be deleted", is_deleted).await;
    assert_no_secret(&daemon, "tasks that have waited");
    let repeated = api.start(secret(queued("q", idempotent("c")))).await.id;
    assert_eq!(repeated, ids[first + 2], "the request is recognised");
    let other = api.spawn(queued("q", idempotent("c"))).await;
    Refusal::expect(other, tonic::Code::AlreadyExists, "REQUEST_ID_REUSED");

    ids.push(cancelled);
    api.remove(&ids).await.unwrap();
    assert_no_secret(&daemon, "removed tasks");
    daemon.terminate();
    assert_no_secret(&daemon, "after the server's end");
    daemon.restart().await;
    assert_no_secret(&daemon, "the next server");
}

/// R4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_journal_of_an_earlier_build_is_refused_by_its_version() {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    let journal = daemon.state_dir().join("journal.db");
    let mut bytes = fs::read(&journal).unwrap();
    // PRAGMA user_version.
    bytes[60..64].copy_from_slice(&1u32.to_be_bytes());
    fs::write(&journal, &bytes).unwrap();
    let stderr = refused(&daemon).await;
    assert!(stderr.contains("schema version 1"), "{stderr}");
    assert_eq!(fs::read(&journal).unwrap(), bytes, "changed");
}
