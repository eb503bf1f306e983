//! Full disks: calls are refused by name, tasks go on, and nothing is lost.

use std::fs;

use heeler_tests::{
    Api, DEADLINE, Refusal, SmallDisk, SpawnRequestExt as _, eventually, millis,
    outcome::exit_code, request::wait_for_session, shell, v1::*,
};
use tonic::Code;

fn assert_full<T: std::fmt::Debug>(result: Result<T, tonic::Status>) {
    Refusal::expect(result, Code::ResourceExhausted, "STORAGE_FULL");
}

/// A script that waits for a file outside of the small disk.
pub(crate) fn after(gate: &str, then: &str) -> SpawnRequest {
    shell(format!(
        "while [ ! -e {gate} ]; do sleep 0.05; done; {then}"
    ))
}

/// The state of a task.
pub(crate) async fn state(api: &Api, id: &str) -> TaskState {
    api.task(id).await.state()
}

/// Spawns until the space beside the reserve of the journal is used up. Every Spawn is refused; the first
/// ones are still recorded as failed tasks.
async fn use_up_free_space(api: &Api) {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let refused = api.spawn(shell("true")).await.expect_err("no space");
        let refusal = Refusal::of(&refused);
        assert_eq!(refusal.reason, "STORAGE_FULL", "{refusal:?}");
        if !refusal.metadata.contains_key("task_id") {
            return;
        }
        assert!(
            tokio::time::Instant::now() < end,
            "starts are still recorded"
        );
    }
}

/// O14: a task may be what fills the disk.
#[tokio::test]
async fn on_a_full_disk_tasks_can_be_cancelled_and_removed() {
    let Some((disk, daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
    let api = daemon.api().await;
    let finished = api.start(shell("head -c 1000000 /dev/zero")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    disk.fill();
    assert_full(api.spawn(shell("true")).await);
    let stopped = api.kill(&sleeper).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    api.remove([&finished])
        .await
        .expect("a removal on a full disk");
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
    disk.free();
}

/// L4, O14: a refused start is not an end in its session.
#[tokio::test]
async fn a_spawn_refused_by_a_full_disk_does_not_satisfy_a_wait_for_its_session() {
    let Some((disk, daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
    let api = daemon.api().await;
    let of_session = |request: SpawnRequest| request.with_session("s");
    let sleeper = api.start(of_session(shell("sleep 1000"))).await.id;
    disk.fill();
    use_up_free_space(&api).await;
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
                timeout: Some(millis(5)),
                ..wait_for_session("s")
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
    api.kill(&sleeper).await;
}

/// O14
#[tokio::test]
async fn on_a_full_disk_calls_are_refused_by_name_and_tasks_go_on() {
    let Some((disk, daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
    let api = daemon.api().await;
    let finished = api.start(shell("echo before")).await.id;
    api.ended(&finished).await;
    let sleeper = api.start(shell("sleep 1000")).await.id;
    let gate = daemon.file("home/gate");
    let ending = api.start(after(&gate, "exit 7")).await.id;

    disk.fill();
    use_up_free_space(&api).await;
    let known = api.all().await.len();
    let history = api.history().await;
    for _ in 0..100 {
        assert_full(api.spawn(shell("true")).await);
    }
    assert_full(api.set_queue("q", None, Some(true)).await);
    assert_eq!(state(&api, &sleeper).await, TaskState::Running);
    assert_eq!(
        (api.all().await.len(), api.history().await),
        (known, history),
        "a refused call has changed a task"
    );
    assert_eq!(api.output(&finished).await, b"before\n");

    // The end of a task has space.
    fs::write(&gate, "").unwrap();
    assert_eq!(exit_code(&api.ended(&ending).await), 7);
    let stopped = api.kill(&sleeper).await;
    assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    disk.free();
    api.remove([&finished]).await.expect("a removal");
    let after = api.start(shell("echo after")).await.id;
    assert_eq!(api.ended(&after).await.state(), TaskState::Completed);
    api.history().await;
}

/// O14
#[tokio::test]
async fn output_that_a_full_disk_cannot_take_fails_its_task_and_no_other() {
    let Some((disk, daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
    let api = daemon.api().await;
    let (gate, done) = (daemon.file("home/gate"), daemon.file("home/done"));
    let script = format!("echo early; head -c 3000000 /dev/zero; touch {done}; exit 0");
    let task = api.start(after(&gate, &script)).await.id;
    let other = api.start(shell("sleep 1000")).await.id;
    disk.fill();
    fs::write(&gate, "").unwrap();
    eventually("the task to go on", || fs::exists(&done).unwrap()).await;
    disk.free();
    let ended = api.ended(&task).await;
    assert_eq!(ended.state(), TaskState::Failed, "{ended:?}");
    assert_eq!(exit_code(&ended), 0, "the command's own exit code");
    assert!(format!("{ended:?}").contains("No space left"), "{ended:?}");
    assert_eq!(state(&api, &other).await, TaskState::Running);
}

/// O14, R1
#[tokio::test]
async fn a_server_restarts_on_a_full_disk() {
    let Some((disk, mut daemon)) = SmallDisk::with_daemon(16).await else {
        return;
    };
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
    api.kill(&sleeper).await;
}
