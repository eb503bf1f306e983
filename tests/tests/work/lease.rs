//! The lease of a hosted task: a worker that goes silent, comes back, or is replaced.

use std::time::{Duration, Instant};

use heeler_tests::{
    Daemon, Refusal, Worker, eventually, micros, millis,
    outcome::assert_worker_lost,
    secs,
    v1::{work_request::Item as Request, work_response::Item as Response, *},
    watch::{ONE_RUN, task_of, types},
    worker::{hosted, hosted_as, join, result},
};
use tonic::Code;

fn with_lease(lease: prost_types::Duration) -> WorkRegister {
    WorkRegister {
        lease: Some(lease),
        ..hosted()
    }
}

/// P3, E1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_goes_silent_past_its_lease_is_lost_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // One is silent on an open stream, the other one is gone.
    let mut silent = Worker::register(&api, with_lease(secs(1))).await;
    let gone = Worker::register(&api, with_lease(secs(1))).await.id();
    let ended = silent.ended().await;
    assert_worker_lost(&ended, "silent for longer than its lease");
    let lasted = micros(&ended.end_time) - micros(&ended.start_time);
    assert!(lasted >= 1_000_000, "lost after {lasted} us");
    assert_worker_lost(&api.ended(&gone).await, "silent for longer than its lease");
    for id in [&ended.id, &gone] {
        assert_eq!(types(&api.history_of(id).await), ONE_RUN);
    }
}

/// P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn heartbeats_of_either_kind_keep_the_lease() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, with_lease(secs(2))).await;
    let begun = Instant::now();
    eventually("more than two leases", || {
        worker.keep_lease();
        begun.elapsed() > Duration::from_secs(5)
    })
    .await;
    assert_eq!(api.task(&worker.id()).await.state(), TaskState::Running);
    worker.finish(result(WorkerStatus::Ok, "")).await;
}

/// P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_comes_back_within_its_lease_goes_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let first = Worker::register(&api, with_lease(secs(20))).await;
    let (id, worker_id) = (first.id(), first.joined.worker_id.clone());
    let again = WorkJoin {
        worker_id: worker_id.clone(),
        ..join(&id)
    };
    drop(first);
    let mut back = Worker::join(&daemon.api().await, again).await;
    assert_eq!(back.joined.worker_id, worker_id);
    assert_eq!(back.task().state(), TaskState::Running);
    let ended = back.finish(result(WorkerStatus::Ok, "after all")).await;
    assert_eq!(ended.state(), TaskState::Completed);
}

/// P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_worker_is_refused_unless_it_takes_over_or_the_first_is_gone() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut first = Worker::register(&api, hosted()).await;
    let id = first.id();
    let refused = Worker::begin(&api, Request::Join(join(&id))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "WORKER_CONNECTED");
    assert_eq!(refusal.value("task_id"), id);
    let taking = WorkJoin {
        take_over: true,
        ..join(&id)
    };
    let second = Worker::join(&api, taking).await;
    let replaced = first.try_next().await.unwrap_err();
    Refusal::expect(Err::<(), _>(replaced), Code::Aborted, "WORKER_REPLACED");
    second.leave(&api).await;
    let mut third = Worker::join(&api, join(&id)).await;
    let ended = third.finish(result(WorkerStatus::Ok, "third")).await;
    assert_eq!(ended.result.unwrap().text, "third");
}

/// P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_connects_again_ends_its_own_broken_stream() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut half_open = Worker::register(&api, hosted()).await;
    let mut again = half_open.rejoin(&daemon.api().await).await;
    let replaced = half_open.try_next().await.unwrap_err();
    Refusal::expect(Err::<(), _>(replaced), Code::Aborted, "WORKER_REPLACED");
    again.finish(result(WorkerStatus::Ok, "")).await;
}

/// T4, T5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_zombie_is_stale_although_its_library_keeps_the_lease() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(
        &api,
        WorkRegister {
            lease: Some(secs(20)),
            ..hosted_as(TaskSpec {
                silence: Some(SilencePolicy {
                    stale_after: Some(millis(500)),
                    ..Default::default()
                }),
                ..Default::default()
            })
        },
    )
    .await;
    let mut watch = api.watch_after(worker.task().revision).await;
    let keeping = eventually("staleness", || {
        worker.keep_lease();
        false
    });
    let stale = tokio::select! {
        event = watch.event() => event,
        () = keeping => unreachable!("it goes on for ever"),
    };
    assert_eq!(stale.r#type(), TaskEventType::Stale);
    assert!(task_of(&stale).stale);
    worker.beat();
    let active = watch.event().await;
    assert_eq!(active.r#type(), TaskEventType::Active);
    assert!(!task_of(&active).stale);
    assert_eq!(watch.event().await.r#type(), TaskEventType::Stale, "again");
    worker.finish(result(WorkerStatus::Ok, "")).await;
}

/// T4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn heartbeats_and_progress_push_the_idle_deadline_back() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(
        &api,
        hosted_as(TaskSpec {
            idle_timeout: Some(secs(3)),
            stop: Some(StopPolicy {
                grace: Some(secs(20)),
                ..Default::default()
            }),
            ..Default::default()
        }),
    )
    .await;
    for _ in 0..2 {
        let begun = Instant::now();
        let within_the_limit = Duration::from_millis(1000);
        eventually("a part of the limit", || begun.elapsed() > within_the_limit).await;
        worker.beat();
        let begun = Instant::now();
        eventually("a part of the limit", || begun.elapsed() > within_the_limit).await;
        worker.report(ProgressUpdate::default()).await;
    }
    assert_eq!(api.task(&worker.id()).await.state(), TaskState::Running);
    let told = worker.cancelled().await;
    assert_eq!(told.cause(), EndReason::IdleTimeout);
    let ended = worker.finish(result(WorkerStatus::Cancelled, "")).await;
    assert_eq!(
        (ended.state(), ended.end_reason()),
        (TaskState::TimedOut, EndReason::IdleTimeout)
    );
}

/// P3: the server's own pause is not the worker's silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_was_stopped_does_not_lose_its_workers() {
    use nix::{
        sys::signal::{Signal, kill},
        unistd::Pid,
    };
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, with_lease(secs(1))).await;
    let server = Pid::from_raw(daemon.pid());
    kill(server, Signal::SIGSTOP).unwrap();
    let begun = Instant::now();
    eventually("three leases", || {
        worker.keep_lease();
        begun.elapsed() > Duration::from_secs(3)
    })
    .await;
    kill(server, Signal::SIGCONT).unwrap();
    worker.deliver(result(WorkerStatus::Ok, "still here"));
    match worker.next().await {
        Response::Acknowledged(_) => {}
        Response::Ended(ended) => {
            let ended = ended.task.unwrap();
            assert_eq!(ended.state(), TaskState::Completed, "{ended:?}");
        }
        other @ (Response::Joined(_)
        | Response::Admitted(_)
        | Response::Cancel(_)
        | Response::Message(_)) => panic!("not ended: {other:?}"),
    }
    assert_eq!(api.ended(&worker.id()).await.state(), TaskState::Completed);
}
