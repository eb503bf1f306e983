//! Request ids, which make a Spawn safe to repeat.

use heeler_tests::{Daemon, Refusal, SpawnRequestExt as _, argv, v1::*};
use tonic::Code;

fn with_id(id: &str, request: SpawnRequest) -> SpawnRequest {
    request.with_request_id(id)
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_request_is_one_task_and_the_same_answer() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_id("r-1", daemon.script("print once exit 0"));
    let first = api.spawn(request.clone()).await.unwrap();
    let id = first.task.as_ref().unwrap().id.clone();
    assert_eq!(
        api.spawn(request.clone()).await.unwrap(),
        first,
        "before its end"
    );
    api.ended(&id).await;
    assert_eq!(api.spawn(request).await.unwrap(), first, "after its end");
    assert_eq!(api.all().await.len(), 1);
    assert_eq!(api.lines(&id).await, ["once"]);
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sixteen_equal_requests_at_once_are_one_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..5 {
        let request = with_id(&format!("round-{round}"), daemon.script("forever"));
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let (request, connection) = (request.clone(), daemon.api().await);
            calls.spawn(async move { connection.spawn(request).await.unwrap() });
        }
        let answers = calls.join_all().await;
        assert!(
            answers.iter().all(|answer| *answer == answers[0]),
            "{answers:?}"
        );
        assert_eq!(api.all().await.len(), round + 1);
    }
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_repeated_after_a_crash_gives_the_first_answer() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let running = with_id("running", daemon.script("forever"));
    let over = with_id("over", argv(["true"]));
    let first_running = api.spawn(running.clone()).await.unwrap();
    let first_over = api.spawn(over.clone()).await.unwrap();
    api.ended(&first_over.task.as_ref().unwrap().id).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.spawn(running).await.unwrap(), first_running);
    assert_eq!(api.spawn(over).await.unwrap(), first_over);
    assert_eq!(api.all().await.len(), 2);
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_id_with_a_different_request_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_id("r-1", argv(["sleep", "0"]));
    let first = api.start(request.clone()).await;
    let revision = api.ended(&first.id).await.revision;
    let others = [
        with_id("r-1", argv(["sleep", "0.0"])),
        request.clone().with_name("named"),
        request.clone().with_labels([("k", "v")]),
        request.clone().with_env([("A", "1")]),
        request.clone().with_kind(TaskKind::Agent),
        request.clone().with_timeout(heeler_tests::secs(60)),
    ];
    for other in others {
        let refused = api.spawn(other).await;
        let refusal = Refusal::expect(refused, Code::AlreadyExists, "REQUEST_ID_REUSED");
        assert_eq!(
            (refusal.value("request_id"), refusal.value("task_id")),
            ("r-1", &*first.id)
        );
    }
    assert_eq!(api.revision().await, revision, "nothing was created");
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_request_id_every_call_starts_a_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (one, two) = (
        api.start(argv(["true"])).await,
        api.start(argv(["true"])).await,
    );
    assert_ne!(one.id, two.id);
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_removed_tasks_request_id_can_be_used_again() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_id("r-1", argv(["true"]));
    let first = api.start(request.clone()).await;
    api.ended(&first.id).await;
    api.remove([&first.id]).await.unwrap();
    let second = api.start(request).await;
    assert_ne!(second.id, first.id);
}
