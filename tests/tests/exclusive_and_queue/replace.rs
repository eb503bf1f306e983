//! Replacing the holder of an exclusive key.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, argv, exclusive, millis, outcome::proven, v1::*, watch::ONE_RUN,
};

use ExclusiveMode::{Queue, Reject, Replace};

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_replaced_holder_is_proven_gone_before_the_next_task_starts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = exclusive("k", Reject, SpawnRequest::default()).with_grace(millis(200));
    let script = "ignore TERM fork [ setsid pid hidden forever ] pid ready forever";
    let mut holder = daemon.run_as(&api, request, script).await;
    holder.processes(&["ready", "hidden"]).await;
    let waiting = api.start(exclusive("k", Queue, argv(["true"]))).await;

    let next = api
        .start(exclusive("k", Replace, daemon.script("forever")))
        .await;
    assert_eq!(
        next.state(),
        TaskState::Running,
        "answered before its leader runs"
    );
    holder.assert_gone();
    let replaced = api.task(&holder.id).await;
    assert_eq!(
        (replaced.state(), replaced.end_reason()),
        (TaskState::Cancelled, EndReason::Replaced)
    );
    let stop = replaced.stop.unwrap();
    assert_eq!(stop.reason, format!("replaced by {}", next.id));
    proven(stop.proof.as_ref());
    api.assert_one_after_the_other(&[holder.id.clone(), next.id.clone()])
        .await;
    assert_eq!(api.task(&waiting.id).await.state(), TaskState::Queued);
    api.kill(&next.id).await;
    assert_eq!(api.ended(&waiting.id).await.state(), TaskState::Completed);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn replace_of_a_free_key_starts_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(exclusive("k", Replace, argv(["true"]))).await;
    api.ended(&task.id).await;
    assert_eq!(api.event_types(&task.id).await, ONE_RUN);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_newer_replacement_ends_an_older_queued_one() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request =
        exclusive("k", Reject, SpawnRequest::default()).with_grace(heeler_tests::secs(60));
    let holder = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    holder.process("ready").await;
    let ran = format!("pids {} pid leader exit 0", daemon.file("ran"));
    let older = exclusive("k", Replace, daemon.script(&ran));
    let older = tokio::spawn({
        let api = api.clone();
        async move { api.start(older).await }
    });
    api.until(&holder.id, TaskState::Stopping).await;
    let newer = exclusive("k", Replace, daemon.script("forever"));
    let newer = tokio::spawn({
        let api = api.clone();
        async move { api.start(newer).await }
    });
    let older = older.await.unwrap();
    assert_eq!(
        (older.state(), older.end_reason()),
        (TaskState::Cancelled, EndReason::Replaced)
    );
    api.kill(&holder.id).await;
    let newer = newer.await.unwrap();
    assert_eq!(newer.state(), TaskState::Running);
    let stop = older.stop.unwrap();
    assert_eq!(stop.reason, format!("replaced by {}", newer.id));
    assert_eq!(proven(stop.proof.as_ref()), ProofMethod::NeverStarted);
    assert!(!daemon.path("ran").exists());
}

/// X1, X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_replacement_continues_after_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = exclusive("k", Reject, SpawnRequest::default()).with_grace(millis(1500));
    let mut holder = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    holder.process("ready").await;
    let request =
        exclusive("k", Replace, daemon.script("print begun forever")).with_request_id("once");
    let asked = tokio::spawn({
        let (api, request) = (api.clone(), request.clone());
        async move { api.spawn(request).await }
    });
    api.until(&holder.id, TaskState::Stopping).await;
    daemon.kill9();
    asked.await.unwrap().unwrap_err();
    daemon.restart().await;
    let api = daemon.api().await;
    let next = api.spawn(request.clone()).await.unwrap();
    holder.assert_gone();
    let task = next.task.clone().unwrap();
    assert_eq!(task.state(), TaskState::Running);
    assert_eq!(
        api.spawn(request).await.unwrap(),
        next,
        "the repeated request"
    );
    assert_eq!(api.all().await.len(), 2);
    api.assert_one_after_the_other(&[holder.id.clone(), task.id])
        .await;
}

/// X1, X2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_racing_replacements_one_is_left() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..8 {
        let key = format!("k-{round}");
        let claims = (0..12).map(|_| {
            let (api, request) = (
                api.clone(),
                exclusive(&key, Replace, argv(["sleep", "1000"])),
            );
            tokio::spawn(async move { api.start(request).await.id })
        });
        let mut ids = Vec::new();
        for claim in claims.collect::<Vec<_>>() {
            ids.push(claim.await.unwrap());
        }
        // Each was answered when its leader ran or when it was replaced.
        let mut left = Vec::new();
        for id in ids {
            let task = api.task(&id).await;
            if task.state() == TaskState::Running {
                left.push(id);
            } else {
                assert_eq!(task.end_reason(), EndReason::Replaced, "{task:?}");
            }
        }
        assert_eq!(left.len(), 1, "round {round}");
        api.kill(&left[0]).await;
    }
}
