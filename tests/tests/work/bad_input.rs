//! Bad input of workers: refused with the field at fault, and nothing has changed.

use std::collections::BTreeMap;

use heeler_tests::{
    Api, Daemon, Refusal, Worker, secs, shell,
    v1::{work_request::Item as Request, *},
    worker::{hosted, hosted_as, join, notes, result},
};
use tonic::Code;

/// The field that the first message is refused for.
async fn refused_field(api: &Api, first: Request) -> String {
    let refused = Worker::begin(api, first).await;
    let mut refusal = Refusal::expect(refused, Code::InvalidArgument, "INVALID_FIELD");
    refusal.fields.remove(0)
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_registration_with_options_of_a_process_is_refused_by_field() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let stop = |policy| TaskSpec {
        stop: Some(policy),
        ..Default::default()
    };
    let cases: Vec<(&str, TaskSpec)> = vec![
        (
            "register.spec.kind",
            TaskSpec {
                kind: TaskKind::Shell.into(),
                ..Default::default()
            },
        ),
        (
            "register.spec.kind",
            TaskSpec {
                kind: 99,
                ..Default::default()
            },
        ),
        ("register.spec.command", shell("true").spec.unwrap()),
        (
            "register.spec.environment",
            TaskSpec {
                environment: Some(TaskEnvironment::default()),
                ..Default::default()
            },
        ),
        (
            "register.spec.foreground",
            TaskSpec {
                foreground: Some(ForegroundPolicy::default()),
                ..Default::default()
            },
        ),
        (
            "register.spec.output",
            TaskSpec {
                output: Some(OutputPolicy::default()),
                ..Default::default()
            },
        ),
        (
            "register.spec.orphan_policy",
            TaskSpec {
                orphan_policy: OrphanPolicy::Kill.into(),
                ..Default::default()
            },
        ),
        (
            "register.spec.stop.signal",
            stop(StopPolicy {
                signal: "SIGINT".to_owned(),
                ..Default::default()
            }),
        ),
        (
            "register.spec.stop.soft_grace",
            stop(StopPolicy {
                soft_grace: Some(secs(-1)),
                ..Default::default()
            }),
        ),
        (
            "register.spec.session_id",
            TaskSpec {
                session_id: "x".repeat(300),
                ..Default::default()
            },
        ),
        (
            "register.spec.timeout",
            TaskSpec {
                timeout: Some(secs(0)),
                ..Default::default()
            },
        ),
    ];
    for (field, spec) in cases {
        let first = match field {
            "register.spec.command" => TaskSpec { kind: 0, ..spec },
            _ => spec,
        };
        let refused = refused_field(&api, Request::Register(hosted_as(first))).await;
        assert_eq!(refused, field);
    }
    let without_spec = WorkRegister::default();
    assert_eq!(
        refused_field(&api, Request::Register(without_spec)).await,
        "register.spec"
    );
    assert!(api.ids().await.is_empty(), "nothing was created");
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_lease_of_zero_a_year_or_less_than_nothing_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for lease in [secs(0), secs(365 * 24 * 3600), secs(-1), secs(3601)] {
        let register = WorkRegister {
            lease: Some(lease),
            ..hosted()
        };
        let refused = refused_field(&api, Request::Register(register)).await;
        assert_eq!(refused, "register.lease", "{lease:?}");
    }
    let longest = WorkRegister {
        lease: Some(secs(3600)),
        ..hosted()
    };
    Worker::register(&api, longest).await.leave(&api).await;
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn spawn_starts_no_hosted_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest {
        spec: Some(TaskSpec {
            kind: TaskKind::Hosted.into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    let refusal = Refusal::expect(
        api.spawn(request).await,
        Code::InvalidArgument,
        "INVALID_FIELD",
    );
    assert_eq!(refusal.fields, ["spec.kind"]);
}

/// S2, N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_in_the_wrong_place_and_bad_values_end_the_stream_with_the_field() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let beat = Request::Heartbeat(WorkHeartbeat::default());
    assert_eq!(refused_field(&api, beat).await, "item");
    let nameless = Request::Join(WorkJoin::default());
    assert_eq!(refused_field(&api, nameless).await, "join.task_id");
    let unknown = Worker::begin(&api, Request::Join(join("hosted-aaaaaaaaaa"))).await;
    Refusal::expect(unknown, Code::NotFound, "TASK_NOT_FOUND");

    let worker = Worker::register(&api, hosted()).await;
    let strange = WorkJoin {
        worker_id: "me".to_owned(),
        ..join(&worker.id())
    };
    assert_eq!(
        refused_field(&api, Request::Join(strange)).await,
        "join.worker_id"
    );
    let counts = |names: usize, bytes: usize| ProgressUpdate {
        counts: (0..names)
            .map(|n| (format!("{n:0bytes$}"), 1))
            .collect::<BTreeMap<_, _>>(),
        ..Default::default()
    };
    let cases = [
        ("item", Request::Register(hosted())),
        ("item", Request::Join(join(&worker.id()))),
        (
            "progress.percent",
            Request::Progress(ProgressUpdate {
                percent: Some(101),
                ..Default::default()
            }),
        ),
        ("progress.blocks", Request::Progress(notes(vec!["x"; 1001]))),
        (
            "progress.blocks[0].kind",
            Request::Progress(ProgressUpdate {
                blocks: vec![Block {
                    kind: 99,
                    ..Default::default()
                }],
                ..Default::default()
            }),
        ),
        ("progress.counts", Request::Progress(counts(33, 2))),
        ("progress.counts[", Request::Progress(counts(1, 65))),
        ("result.status", Request::Result(WorkerResult::default())),
        (
            "result.status",
            Request::Result(WorkerResult {
                status: 99,
                ..Default::default()
            }),
        ),
        (
            "result.text",
            Request::Result(result(WorkerStatus::Ok, &"x".repeat(64 * 1024 + 1))),
        ),
        (
            "result.data",
            Request::Result(WorkerResult {
                data: vec![0; 64 * 1024 + 1].into(),
                ..result(WorkerStatus::Ok, "")
            }),
        ),
    ];
    let mut worker = worker;
    for (field, item) in cases {
        worker.send(1, item);
        let refused = worker.try_next().await;
        let refusal = Refusal::expect(refused, Code::InvalidArgument, "INVALID_FIELD");
        assert!(refusal.fields[0].starts_with(field), "{field}: {refusal:?}");
        worker = worker.rejoin(&api).await;
    }
    assert_eq!(
        api.task(&worker.id()).await.progress,
        None,
        "nothing has changed"
    );
    worker
        .finish(result(WorkerStatus::Ok, &"x".repeat(64 * 1024)))
        .await;
}

/// P7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_result_is_refused_and_the_same_one_is_acknowledged() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    worker.send(1, Request::Result(result(WorkerStatus::Ok, "first")));
    worker.acknowledged(1).await;
    worker.send(2, Request::Result(result(WorkerStatus::Ok, "first")));
    worker.acknowledged(2).await;
    worker.send(3, Request::Result(result(WorkerStatus::Failed, "second")));
    let refused = worker.try_next().await;
    Refusal::expect(refused, Code::FailedPrecondition, "RESULT_DELIVERED");
    let task = api.kill(&task.id).await.task.unwrap();
    assert_eq!(task.result.unwrap().text, "first");
}

/// P1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_finished_or_unknown_task_takes_no_progress() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exit 1")).await;
    api.ended(&task.id).await;
    let report = |id: &str| ReportProgressRequest {
        task_id: id.to_owned(),
        update: Some(notes(["too late"])),
        listens: true,
    };
    let late = api.raw().report_progress(report(&task.id)).await;
    let refusal = Refusal::expect(late, Code::FailedPrecondition, "TASK_FINISHED");
    assert_eq!(refusal.value("state"), "FAILED");
    let unknown = api.raw().report_progress(report("shell-aaaaaaaaaa")).await;
    Refusal::expect(unknown, Code::NotFound, "TASK_NOT_FOUND");
    let nameless = api.raw().report_progress(report("")).await;
    let refusal = Refusal::expect(nameless, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal.fields, ["task_id"]);
    let many = InspectRequest {
        task_id: task.id,
        block_count: Some(65),
        ..Default::default()
    };
    let refusal = Refusal::expect(
        api.raw().inspect(many).await,
        Code::InvalidArgument,
        "INVALID_FIELD",
    );
    assert_eq!(refusal.fields, ["block_count"]);
}

/// P7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_worker_sends_after_the_end_is_answered_with_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let ended = api.kill(&worker.id()).await.task.unwrap();
    worker.send(1, Request::Progress(notes(["too late"])));
    worker.send(2, Request::Result(result(WorkerStatus::Ok, "too late")));
    assert_eq!(worker.ended().await, ended);
    worker.assert_closed().await;
    let task = api.task(&ended.id).await;
    assert_eq!((task.result, task.progress), (None, None));
}

/// S2, O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn patterns_of_a_hosted_task_are_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let request = UpdateTaskRequest {
        task_id: worker.id(),
        set_patterns: vec![OutputPattern {
            name: "errors".to_owned(),
            regex: "^error".to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    };
    let refused = api.raw().update_task(request).await;
    let refusal = Refusal::expect(refused, Code::InvalidArgument, "INVALID_FIELD");
    assert_eq!(refusal.fields, ["task_id"]);
    let ended = worker
        .finish(result(WorkerStatus::Ok, "two findings"))
        .await;
    let summary = api.inspect(&ended.id).await.unwrap().summary;
    assert!(summary.contains("result: two findings"), "{summary}");
    assert!(!summary.contains("output"), "{summary}");
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_beyond_the_limit_is_refused_by_its_size() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    worker.send(1, Request::Progress(notes(["x".repeat(3 << 20)])));
    let refused = worker.try_next().await;
    let refusal = Refusal::expect(refused, Code::OutOfRange, "REQUEST_TOO_LARGE");
    assert_eq!(refusal.value("max"), (3 << 20).to_string());
    let mut again = worker.rejoin(&api).await;
    again.report(notes(["x".repeat(2 << 20)])).await;
    again.finish(result(WorkerStatus::Ok, "")).await;
}
