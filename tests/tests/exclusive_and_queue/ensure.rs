//! ENSURE: an equal live task is the answer.

use std::collections::BTreeSet;

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, argv, exclusive, millis, queued, secs, shell, v1::*,
};
use tonic::{Code, Status};

use super::gated;
use ExclusiveMode::{Ensure, Queue, Reject, Replace};

/// Expects an answer that names an earlier task.
fn assert_existing(answer: &SpawnResponse, id: &str) {
    assert_eq!(answer.task.as_ref().unwrap().id, id);
    let notices = &answer.notices;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].r#type(), SpawnNoticeType::AlreadyRunning);
    assert!(notices[0].message.contains(id), "{}", notices[0].message);
}

/// Expects a refusal that names the field in which the holder differs.
fn assert_differs(refused: Result<SpawnResponse, Status>, holder: &str, field: &str) {
    let message = refused.as_ref().unwrap_err().message().to_owned();
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_DIFFERS");
    assert_eq!(refusal.value("field"), field);
    assert_eq!(refusal.value("task_id"), holder);
    assert!(message.contains(field), "{message}");
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_equal_live_task_is_the_answer_and_nothing_is_started() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = exclusive("dev", Ensure, daemon.script("forever")).with_env([("PORT", "1")]);
    let first = api.spawn(request.clone()).await.unwrap();
    assert_eq!(first.notices, []);
    let task = first.task.unwrap();
    let (revision, processes) = (api.revision().await, daemon.processes().len());

    let again = api.spawn(request.clone()).await.unwrap();
    assert_existing(&again, &task.id);
    assert_eq!(again.task, Some(task.clone()), "as it is now");
    let for_another = (request.clone().with_name("another").with_session("s"))
        .with_labels([("team", "red")])
        .with_parent(task.id.clone())
        .with_working_directory(format!("{}/./", daemon.home().display()))
        .with_request_id("r");
    assert_existing(&api.spawn(for_another).await.unwrap(), &task.id);
    assert_eq!(
        (api.revision().await, daemon.processes().len()),
        (revision, processes),
        "nothing is recorded and nothing started"
    );
    api.kill(&task.id).await;
    let next = api.spawn(request).await.unwrap();
    assert_eq!(next.notices, []);
    assert_ne!(next.task.unwrap().id, task.id, "the key was free");
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_mode_of_the_holder_does_not_matter() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (key, mode) in [("a", Reject), ("b", Queue), ("c", Replace)] {
        let holder = api.start(exclusive(key, mode, shell("sleep 1000"))).await;
        let ensured = exclusive(key, Ensure, shell("sleep 1000"));
        assert_existing(&api.spawn(ensured).await.unwrap(), &holder.id);
    }
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_different_task_is_refused_with_the_first_difference() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = |request| exclusive("k", Ensure, request).with_env([("TOKEN", "hunter2")]);
    let holder = api.start(request(shell("sleep 1000"))).await;
    let revision = api.revision().await;
    let same = || request(shell("sleep 1000"));
    let different = [
        (request(shell("sleep 999")), "spec.shell.script"),
        (request(argv(["sleep", "1000"])), "spec.command"),
        (same().with_kind(TaskKind::Agent), "spec.kind"),
        (same().with_working_directory("/"), "spec.working_directory"),
        (same().with_timeout(secs(3600)), "spec.timeout"),
        (same().with_grace(secs(1)), "spec.stop.grace"),
        (same().with_stale_after(secs(60)), "spec.silence"),
        (same().in_foreground(), "spec.foreground"),
        (same().with_queue("q"), "spec.queue"),
    ];
    for (request, field) in different {
        assert_differs(api.spawn(request).await, &holder.id, field);
    }
    let script = same().with_command_of(shell("sleep 1000 &"));
    let answer = api.spawn(script).await.unwrap();
    let types: Vec<_> = answer.notices.iter().map(SpawnNotice::r#type).collect();
    use SpawnNoticeType::{AlreadyRunning, TrailingAmpersand};
    assert_eq!(types, [TrailingAmpersand, AlreadyRunning]);
    assert_eq!(api.revision().await, revision);
}

/// X4, N4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn values_of_variables_are_compared_and_not_disclosed_also_after_a_crash() {
    let mut daemon = Daemon::start().await;
    let request = |value: &str| {
        let task = exclusive("k", Ensure, shell("sleep 1000"));
        task.with_env([("TOKEN", value), ("PORT", "8080")])
    };
    let holder = daemon.api().await.start(request("hunter2")).await;
    for round in ["before", "after a crash"] {
        let api = daemon.api().await;
        assert_existing(&api.spawn(request("hunter2")).await.unwrap(), &holder.id);
        let refused = api.spawn(request("swordfish")).await;
        let text = format!("{:?}", refused.as_ref().unwrap_err());
        for value in ["hunter2", "swordfish", "8080"] {
            assert!(!text.contains(value), "{round}: {text}");
        }
        assert_differs(refused, &holder.id, "spec.environment.variables[\"TOKEN\"]");
        let fewer = request("hunter2").with_env([("TOKEN", "hunter2")]);
        assert_differs(
            api.spawn(fewer).await,
            &holder.id,
            "spec.environment.variables[\"PORT\"]",
        );
        daemon.kill9();
        daemon.restart().await;
    }
    let state_dir = daemon.state_dir();
    for file in ["journal.db", "journal.db-wal"] {
        let bytes = std::fs::read(state_dir.join(file)).unwrap();
        let has = |value: &str| bytes.windows(value.len()).any(|at| at == value.as_bytes());
        assert!(!has("hunter2") && !has("swordfish"), "{file} has a value");
    }
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_racing_claims_one_starts_and_all_get_its_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..8 {
        let request = exclusive(&format!("k-{round}"), Ensure, argv(["sleep", "1000"]));
        let claims = (0..12).map(|_| {
            let (api, request) = (api.clone(), request.clone());
            tokio::spawn(async move { api.spawn(request).await.unwrap() })
        });
        let mut ids = BTreeSet::new();
        let mut started = 0;
        for claim in claims.collect::<Vec<_>>() {
            let answer = claim.await.unwrap();
            started += usize::from(answer.notices.is_empty());
            let task = answer.task.unwrap();
            assert_eq!(task.state(), TaskState::Running, "answered too early");
            ids.insert(task.id);
        }
        assert_eq!((ids.len(), started), (1, 1), "round {round}");
    }
    assert_eq!(api.all().await.len(), 8);
}

/// Starts a holder that ignores SIGTERM, and asks it to stop.
async fn stopping_holder(daemon: &Daemon, api: &Api, grace: prost_types::Duration) -> String {
    let request = exclusive("k", Reject, SpawnRequest::default()).with_grace(grace);
    let script = "ignore TERM pid ready forever";
    let holder = daemon.run_as(api, request, script).await;
    holder.process("ready").await;
    let cancel = CancelRequest {
        filter: Some(TaskFilter {
            task_ids: vec![holder.id.clone()],
            ..TaskFilter::default()
        }),
        ..CancelRequest::default()
    };
    api.cancel(cancel).await.unwrap();
    assert_eq!(api.task(&holder.id).await.state(), TaskState::Stopping);
    holder.id.clone()
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_stopping_holder_is_waited_for_until_it_is_gone() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let holder = stopping_holder(&daemon, &api, secs(60)).await;
    let mut created = api.watch_after(api.revision().await).await;
    let request = exclusive("k", Ensure, shell("sleep 1000"));
    let calls = [0, 1].map(|_| {
        let (api, request) = (api.clone(), request.clone());
        tokio::spawn(async move { api.spawn(request).await.unwrap() })
    });
    let next = created.event().await.task.unwrap();
    assert_eq!(next.state(), TaskState::Queued);
    let other = exclusive("k", Ensure, shell("sleep 999"));
    assert_differs(api.spawn(other).await, &next.id, "spec.shell.script");
    api.kill(&holder).await;
    for call in calls {
        let task = call.await.unwrap().task.unwrap();
        assert_eq!((&task.id, task.state()), (&next.id, TaskState::Running));
    }
    api.assert_one_after_the_other(&[holder, next.id]).await;
}

/// X4, X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_ensured_task_that_waits_survives_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let holder = stopping_holder(&daemon, &api, millis(1500)).await;
    let mut created = api.watch_after(api.revision().await).await;
    let request = exclusive("k", Ensure, daemon.script("print begun forever"));
    let asked = tokio::spawn({
        let (api, request) = (api.clone(), request.clone().with_request_id("once"));
        async move { api.spawn(request).await }
    });
    let waiting = created.event().await.task.unwrap();
    assert_eq!(waiting.state(), TaskState::Queued);
    daemon.kill9();
    asked.await.unwrap().unwrap_err();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.spawn(request).await.unwrap().task.unwrap();
    assert_eq!(task.state(), TaskState::Running);
    assert_eq!(task.id, waiting.id, "the one that waited is the answer");
    assert_eq!(api.all().await.len(), 2);
    api.assert_one_after_the_other(&[holder, task.id]).await;
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_task_counts_and_is_the_answer_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    api.start(queued("q", gated(&daemon, "gate"))).await;
    let request = exclusive("k", Ensure, queued("q", argv(["true"])));
    let waiting = api.spawn(request.clone()).await.unwrap().task.unwrap();
    assert_eq!(waiting.state(), TaskState::Queued);
    let again = api.spawn(request).await.unwrap();
    assert_existing(&again, &waiting.id);
    assert_eq!(again.task.unwrap().state(), TaskState::Queued);
    gate.open();
    assert_eq!(api.ended(&waiting.id).await.state(), TaskState::Completed);
}

/// X4, S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_request_id_belongs_to_the_call_that_starts_the_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = |id: &str| exclusive("k", Ensure, argv(["sleep", "1000"])).with_request_id(id);
    let first = api.spawn(request("one")).await.unwrap();
    let task = first.task.clone().unwrap();
    assert_existing(&api.spawn(request("two")).await.unwrap(), &task.id);
    api.kill(&task.id).await;
    assert_eq!(api.spawn(request("one")).await.unwrap(), first);
    let next = api.spawn(request("two")).await.unwrap();
    assert_eq!(next.notices, []);
    assert_ne!(next.task.unwrap().id, task.id);
}

/// X4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_task_is_the_answer_to_an_equal_request() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = exclusive("k", Ensure, daemon.script("print begun forever")).in_foreground();
    let task = api.start(request.clone()).await;
    let mut first = api.attach(&task.id).await;
    first.until("begun").await;
    assert_existing(&api.spawn(request.clone()).await.unwrap(), &task.id);
    let mut second = api.attach(&task.id).await;
    second.until("begun").await;
    api.detach_one(&task.id).await;
    let answer = api.spawn(request).await.unwrap();
    assert_existing(&answer, &task.id);
    let placement = answer.task.unwrap().placement();
    assert_eq!(placement, Placement::Background, "as it is now");
}
