//! Hosted tasks: listed, inspected, waited for and cancelled like any other.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, TaskSpecExt as _, Worker, millis,
    outcome::{outcome, proven},
    request::{cancel, force, session},
    secs, sessions, shell,
    v1::{work_request::Item as Request, work_response::Item as Response, *},
    watch::{ONE_RUN, types},
    worker::{hosted, hosted_as, join, result},
};
use tonic::Code;

/// P2, P7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hosted_task_is_listed_inspected_waited_for_and_ends_with_its_result() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(
        &api,
        WorkRegister {
            lease: Some(secs(60)),
            ..hosted_as(TaskSpec {
                name: "review".to_owned(),
                session_id: "s1".to_owned(),
                working_directory: "/no/such/directory".to_owned(),
                ..Default::default()
            })
        },
    )
    .await;
    let task = worker.task().clone();
    assert!(task.id.starts_with("hosted-"), "{task:?}");
    assert_eq!(
        (task.state(), task.kind()),
        (TaskState::Running, TaskKind::Hosted)
    );
    assert_eq!(
        (&task.leader, task.containment()),
        (&None, Containment::Unspecified)
    );
    assert_eq!(task.worker.as_ref().unwrap().lease, Some(secs(60)));
    assert_eq!(worker.joined.lease, Some(secs(60)));

    let listed = api.list(ListRequest {
        filter: Some(TaskFilter {
            kinds: vec![TaskKind::Hosted.into()],
            ..session("s1")
        }),
        ..Default::default()
    });
    assert_eq!(listed.await.unwrap().tasks, std::slice::from_ref(&task));
    let inspected = api.inspect(&task.id).await.unwrap();
    assert!(inspected.processes.is_empty());
    let connection = inspected.worker.unwrap();
    assert!(connection.connected && connection.heard_time.is_some());

    let data = vec![0, 255];
    let ended = worker.finish(WorkerResult {
        data: data.clone().into(),
        ..result(WorkerStatus::Ok, "all is well")
    });
    let ended = ended.await;
    worker.assert_closed().await;
    assert_eq!(
        (ended.state(), ended.end_reason()),
        (TaskState::Completed, EndReason::Exited)
    );
    assert_eq!(
        outcome(&ended),
        &outcome::Result::Worker(WorkerStatus::Ok.into())
    );
    let kept = ended.result.clone().unwrap();
    assert_eq!((&*kept.text, &*kept.data), ("all is well", &*data));
    assert!(kept.result_time.is_some());
    assert_eq!(api.ended(&task.id).await, ended, "as Wait shows it");
    assert_eq!(api.task(&task.id).await, ended, "as Inspect shows it");
    let history = api.history_of(&task.id).await;
    assert_eq!(types(&history), ONE_RUN);
    assert_eq!(
        history[2].task.as_ref(),
        Some(&ended),
        "as the event shows it"
    );
    api.remove([&task.id]).await.unwrap();
    assert!(api.ids().await.is_empty());
}

/// P2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failure_of_the_worker_is_a_failed_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (status, state, reason) in [
        (
            WorkerStatus::Failed,
            TaskState::Failed,
            EndReason::WorkerFailed,
        ),
        (
            WorkerStatus::Cancelled,
            TaskState::Cancelled,
            EndReason::Cancelled,
        ),
    ] {
        let mut worker = Worker::register(&api, hosted()).await;
        let ended = worker.finish(result(status, "no luck")).await;
        assert_eq!((ended.state(), ended.end_reason()), (state, reason));
        assert_eq!(ended.stop, None);
    }
}

/// P2, C11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_reaches_the_worker_as_a_message_and_its_result_is_kept() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let answer = api
        .cancel_one(CancelRequest {
            reason: "superseded".to_owned(),
            actor: "host".to_owned(),
            ..cancel(&worker.id())
        })
        .await;
    assert_eq!(answer.outcome(), CancelOutcome::Requested);
    assert_eq!(answer.task.unwrap().state(), TaskState::Stopping);
    let told = worker.cancelled().await;
    assert_eq!(told.mode(), WorkCancelMode::Soft);
    assert_eq!(
        (&*told.reason, told.cause()),
        ("superseded", EndReason::Cancelled)
    );
    assert_eq!(told.actor.unwrap().name, "host");
    let remaining = told.remaining.unwrap();
    assert!(
        remaining.seconds >= 8 && remaining.seconds <= 10,
        "{remaining:?}"
    );
    let ended = worker
        .finish(result(WorkerStatus::Cancelled, "half of it"))
        .await;
    assert_eq!(
        (ended.state(), ended.end_reason()),
        (TaskState::Cancelled, EndReason::Cancelled)
    );
    assert_eq!(ended.result.unwrap().text, "half of it");
    let stop = ended.stop.unwrap();
    assert!(!stop.forced && stop.signals.is_empty());
    let proof = stop.proof.unwrap();
    assert!(
        matches!(proof.result, Some(proof::Result::Unproven(_))),
        "{proof:?}"
    );
}

/// P4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_never_reacts_is_told_twice_and_ended_as_forced() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(
        &api,
        hosted_as(TaskSpec {
            stop: Some(StopPolicy {
                soft_grace: Some(millis(400)),
                grace: Some(millis(400)),
                ..Default::default()
            }),
            ..Default::default()
        }),
    )
    .await;
    let begun = std::time::Instant::now();
    let ended = api.stop(&worker.id()).await.task.unwrap();
    assert!(begun.elapsed().as_millis() >= 780, "{:?}", begun.elapsed());
    assert_eq!(worker.cancelled().await.mode(), WorkCancelMode::Soft);
    assert_eq!(worker.cancelled().await.mode(), WorkCancelMode::Final);
    assert_eq!(worker.ended().await, ended);
    assert_eq!(ended.state(), TaskState::Cancelled);
    let stop = ended.stop.as_ref().unwrap();
    assert!(stop.forced);
    assert!(stop.soft.unwrap().end_time.is_some());
    assert!(matches!(outcome(&ended), outcome::Result::Unknown(_)));
    use TaskEventType::{Created, Ended, Started, Stopping};
    let history = types(&api.history_of(&ended.id).await);
    assert_eq!(history, [Created, Started, Stopping, Stopping, Ended]);
}

/// P4, C16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_forced_cancel_ends_a_hosted_task_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let ended = api.stop_by(&worker.id(), force()).await.task.unwrap();
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert!(ended.stop.unwrap().forced);
    assert_eq!(worker.ended().await.id, ended.id);
}

/// C12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cascade_ends_the_children_of_a_hosted_task_and_hosted_children_first() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut parent = Worker::register(&api, hosted()).await;
    let shell = api
        .start(shell("exec sleep 1000").with_parent(parent.id()))
        .await;
    let mut child = Worker::register(
        &api,
        hosted_as(TaskSpec {
            parent_id: parent.id(),
            ..Default::default()
        }),
    )
    .await;
    let request = CancelRequest {
        cascade: true,
        ..cancel(&parent.id())
    };
    api.cancel_one(request).await;
    parent.cancelled().await;
    child.cancelled().await;
    parent.deliver(result(WorkerStatus::Cancelled, "parent"));
    let shell = api.ended(&shell.id).await;
    proven(shell.stop.as_ref().unwrap().proof.as_ref());
    let state = api.task(&parent.id()).await.state();
    assert_eq!(state, TaskState::Stopping, "it waits for its children");
    let child = child.finish(result(WorkerStatus::Cancelled, "child")).await;
    let parent = parent.ended().await;
    assert!(parent.revision > child.revision && parent.revision > shell.revision);
    assert_eq!(parent.result.unwrap().text, "parent");
}

/// E9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_counts_its_hosted_tasks_and_is_idle_after_the_last() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let in_session = || {
        hosted_as(TaskSpec {
            session_id: "s1".to_owned(),
            ..Default::default()
        })
    };
    let mut first = Worker::register(&api, in_session()).await;
    let mut second = Worker::register(&api, in_session()).await;
    let shell = api.start(shell("exec sleep 1000").with_session("s1")).await;
    first.finish(result(WorkerStatus::Ok, "")).await;
    api.kill(&shell.id).await;
    second.finish(result(WorkerStatus::Ok, "")).await;
    let history = api.history().await;
    assert_eq!(sessions::faults(&history), Vec::<String>::new());
    assert_eq!(sessions::idle(&history), ["s1"]);
    let most = history
        .iter()
        .filter_map(|event| event.session_activity.as_ref());
    assert_eq!(most.map(|activity| activity.hosted).max(), Some(2));
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_hosted_task_is_told_when_it_may_begin() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let in_queue = || {
        hosted_as(TaskSpec {
            queue: "reviews".to_owned(),
            ..Default::default()
        })
    };
    let mut first = Worker::register(&api, in_queue()).await;
    let mut second = Worker::register(&api, in_queue()).await;
    assert_eq!(second.task().state(), TaskState::Queued);
    let mut cancelled = Worker::register(&api, in_queue()).await;
    let stopped = api.stop(&cancelled.id()).await.task.unwrap();
    assert_eq!(stopped.state(), TaskState::Cancelled);
    assert_eq!(cancelled.ended().await, stopped, "it never began");
    first.finish(result(WorkerStatus::Ok, "")).await;
    match second.next().await {
        Response::Admitted(admitted) => {
            assert_eq!(admitted.task.unwrap().state(), TaskState::Running);
        }
        other @ (Response::Joined(_)
        | Response::Cancel(_)
        | Response::Message(_)
        | Response::Acknowledged(_)
        | Response::Ended(_)) => panic!("not admitted: {other:?}"),
    }
    second.finish(result(WorkerStatus::Ok, "")).await;
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hosted_task_holds_its_exclusive_key_and_can_be_replaced() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let with_key = |mode: ExclusiveMode| {
        hosted_as(TaskSpec {
            exclusive: Some(ExclusivePolicy {
                key: "member".to_owned(),
                mode: mode.into(),
            }),
            ..Default::default()
        })
    };
    let mut first = Worker::register(&api, with_key(ExclusiveMode::Reject)).await;
    let refused = Worker::begin(&api, Request::Register(with_key(ExclusiveMode::Reject))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    assert_eq!(refusal.value("task_id"), first.id());
    let replacing = tokio::spawn({
        let (api, register) = (api.clone(), with_key(ExclusiveMode::Replace));
        async move { Worker::register(&api, register).await }
    });
    let told = first.cancelled().await;
    assert_eq!(told.cause(), EndReason::Replaced);
    let ended = first.finish(result(WorkerStatus::Cancelled, "")).await;
    assert_eq!(ended.end_reason(), EndReason::Replaced);
    let mut second = replacing.await.unwrap();
    assert!(second.task().revision > ended.revision);
    second.finish(result(WorkerStatus::Ok, "")).await;
}

/// S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn registering_twice_with_one_request_id_joins_the_first_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let named = |request_id: &str| WorkRegister {
        request_id: request_id.to_owned(),
        ..hosted()
    };
    let mut first = Worker::register(&api, named("r1")).await;
    let mut again = Worker::register(&api, named("r1")).await;
    assert_eq!(first.id(), again.id());
    let replaced = first.try_next().await.unwrap_err();
    Refusal::expect(Err::<(), _>(replaced), Code::Aborted, "WORKER_REPLACED");
    let other = WorkRegister {
        lease: Some(secs(7)),
        ..named("r1")
    };
    let refused = Worker::begin(&api, Request::Register(other)).await;
    Refusal::expect(refused, Code::AlreadyExists, "REQUEST_ID_REUSED");
    let ended = again.finish(result(WorkerStatus::Ok, "once")).await;
    assert_eq!(api.ids().await, std::slice::from_ref(&ended.id));
    let mut late = Worker::register(&api, named("r1")).await;
    assert_eq!(late.ended().await, ended, "the first answer");
}

/// P7, P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn joining_a_finished_task_shows_its_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exit 3")).await;
    let ended = api.ended(&task.id).await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    assert_eq!(worker.ended().await, ended);
    worker.assert_closed().await;
}
