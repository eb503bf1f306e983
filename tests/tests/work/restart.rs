//! Workers across a crash of the server.

use std::time::Instant;

use heeler_tests::{
    Daemon, Follower, Refusal, Worker, eventually, millis,
    outcome::assert_worker_lost,
    request::cancel,
    secs, shell,
    v1::*,
    watch::{ONE_RUN, types},
    worker::{hosted, hosted_as, join, notes, result},
};
use tonic::Code;

/// P3, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_goes_on_after_a_crash_and_progress_is_there() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    worker.report(notes(["one"])).await;
    worker.report(notes(["two"])).await;
    let follower = Follower::of(daemon.address());
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut again = worker.rejoin(&api).await;
    assert_eq!(again.joined.acknowledged_sequence, 2);
    assert_eq!(again.task().state(), TaskState::Running);
    again.report(notes(["three"])).await;
    let inspected = api.inspect(&again.id()).await.unwrap();
    let texts: Vec<_> = inspected.blocks.iter().map(|block| &*block.text).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    let ended = again.finish(result(WorkerStatus::Ok, "")).await;
    assert_eq!(ended.progress.unwrap().block_count, 3);
    follower.assert_whole(&api).await;
}

/// P3, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_lease_starts_again_with_the_next_server_and_then_lapses_once() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let register = WorkRegister {
        lease: Some(secs(2)),
        ..hosted()
    };
    let worker = Worker::register(&api, register).await;
    let id = worker.id();
    daemon.kill9();
    drop(worker);
    let begun = Instant::now();
    eventually("two leases", || begun.elapsed().as_secs() >= 4).await;
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&id).await.state(), TaskState::Running);
    let ended = api.ended(&id).await;
    assert_worker_lost(&ended, "silent for longer than its lease");
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&id).await, ended);
    assert_eq!(types(&api.history_of(&id).await), ONE_RUN);
}

/// P4, C13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_of_a_hosted_task_is_finished_by_the_next_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let worker = Worker::register(
        &api,
        hosted_as(TaskSpec {
            stop: Some(StopPolicy {
                soft_grace: Some(millis(500)),
                grace: Some(millis(500)),
                ..Default::default()
            }),
            ..Default::default()
        }),
    )
    .await;
    api.cancel_one(cancel(&worker.id())).await;
    daemon.kill9();
    daemon.restart().await;
    let ended = daemon.api().await.ended(&worker.id()).await;
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert!(ended.stop.unwrap().forced);
}

/// P8, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_survive_a_crash_and_are_delivered_once() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let message = |number: u64| SendMessageRequest {
        task_id: worker.id(),
        text: format!("m{number}"),
        message_id: format!("id{number}"),
        ..Default::default()
    };
    let requests: Vec<_> = (1..=4).map(message).collect();
    for request in &requests[..3] {
        api.raw().send_message(request.clone()).await.unwrap();
    }
    for number in 1..=3 {
        assert_eq!(worker.message().await.number, number);
    }
    worker.received(1);
    worker.report(ProgressUpdate::default()).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    for (number, request) in (1..).zip(&requests) {
        let answer = api.raw().send_message(request.clone()).await.unwrap();
        assert_eq!(answer.into_inner().number, number, "safe to repeat");
    }
    let mut again = worker.rejoin(&api).await;
    for number in 2..=4 {
        let got = again.message().await;
        assert_eq!((got.number, got.text), (number, format!("m{number}")));
    }
    again.finish(result(WorkerStatus::Ok, "")).await;
}

/// R5
#[tokio::test]
async fn a_reboot_loses_a_hosted_task_once() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let worker = Worker::register(&api, hosted()).await;
    let id = worker.id();
    daemon.kill9();
    drop(worker);
    if !daemon.reboot(1) {
        return;
    }
    daemon.restart().await;
    let api = daemon.api().await;
    let ended = api.ended(&id).await;
    assert_worker_lost(&ended, "restarted");
    assert_eq!(types(&api.history_of(&id).await), ONE_RUN);
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_leaves_hosted_tasks_to_the_next_server_or_stops_them() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    daemon.terminate();
    let closed = worker.try_next().await.unwrap_err();
    assert_eq!(closed.code(), Code::Unavailable);
    daemon.restart().await;
    let api = daemon.api().await;
    let mut again = worker.rejoin(&api).await;
    let stopping = tokio::spawn({
        let api = api.clone();
        async move {
            let request = ShutdownRequest {
                tasks: ShutdownTasks::Stop.into(),
                ..Default::default()
            };
            api.shutdown(request).await
        }
    });
    let told = again.cancelled().await;
    assert_eq!(told.cause(), EndReason::ServerShutdown);
    let ended = again
        .finish(result(WorkerStatus::Cancelled, "partly"))
        .await;
    assert_eq!(ended.end_reason(), EndReason::ServerShutdown);
    stopping.await.unwrap().unwrap();
    daemon.ended();
    daemon.restart().await;
    assert_eq!(daemon.api().await.task(&ended.id).await, ended);
}

/// T4, R1: heartbeats are in memory; a crash must not look like silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_is_not_taken_for_the_silence_of_a_worker() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(heeler_tests::SpawnRequestExt::with_idle_timeout(
            shell("exec sleep 1000"),
            secs(4),
        ))
        .await;
    let worker = Worker::join(&api, join(&task.id)).await;
    let begun = Instant::now();
    eventually("more than the limit", || {
        worker.beat();
        begun.elapsed().as_secs() >= 5
    })
    .await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let again = worker.rejoin(&api).await;
    again.beat();
    assert_eq!(api.task(&task.id).await.state(), TaskState::Running);
    let refused = Worker::begin(&api, work_request::Item::Join(join(&task.id))).await;
    Refusal::expect(refused, Code::FailedPrecondition, "WORKER_CONNECTED");
    api.kill(&task.id).await;
}
