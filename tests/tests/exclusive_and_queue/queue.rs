//! Queues, and the limits of sessions and labels.

use heeler_tests::{
    Daemon, Follower, Refusal, SpawnRequestExt as _, argv, eventually, exclusive, queued, v1::*,
};
use tonic::Code;

use super::gated;
use TaskState::{Queued, Running};

fn queue(name: &str, slots: u32, paused: bool, running: u32, waiting: u32) -> Queue {
    Queue {
        name: name.to_owned(),
        slots,
        paused,
        running,
        waiting,
    }
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queue_runs_as_many_tasks_as_it_has_slots() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let mut ids = Vec::new();
    for _ in 0..5 {
        ids.push(api.start(queued("q", gated(&daemon, "gate"))).await.id);
    }
    let beside = api.start(queued("other", daemon.script("forever"))).await;
    assert_eq!(beside.state(), Running);
    assert_eq!(
        api.states(&ids).await,
        [Running, Queued, Queued, Queued, Queued]
    );
    let expected = [queue("other", 1, false, 1, 0), queue("q", 1, false, 1, 4)];
    assert_eq!(api.queues().await, expected);

    let raised = api.set_queue("q", Some(3), None).await.unwrap();
    assert_eq!(raised, queue("q", 3, false, 3, 2));
    for id in &ids[1..3] {
        api.until(id, Running).await;
    }
    assert_eq!(api.task(&ids[3]).await.state(), Queued);

    let lowered = api.set_queue("q", Some(1), None).await.unwrap();
    assert_eq!(lowered, queue("q", 1, false, 3, 2), "no task is evicted");
    api.kill(&ids[0]).await;
    assert_eq!(
        api.task(&ids[3]).await.state(),
        Queued,
        "two tasks still run"
    );
    gate.open();
    for id in &ids[1..] {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
    }
    assert_eq!(api.queues().await, [queue("other", 1, false, 1, 0)]);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_paused_queue_starts_nothing_until_resumed_also_after_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let paused = api.set_queue("q", Some(2), Some(true)).await.unwrap();
    assert_eq!(paused, queue("q", 2, true, 0, 0));
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(api.start(queued("q", daemon.script("forever"))).await.id);
    }
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.states(&ids).await, [Queued; 3]);
    assert_eq!(api.queues().await, [queue("q", 2, true, 0, 3)]);
    assert!(daemon.processes().is_empty(), "a queued task has a process");
    let resumed = api.set_queue("q", None, Some(false)).await.unwrap();
    assert_eq!(resumed, queue("q", 2, false, 2, 1));
    for id in &ids[..2] {
        api.until(id, Running).await;
    }
    assert_eq!(api.task(&ids[2]).await.state(), Queued);
}

/// X1, R1, N4: the environment of a queued task is durable and secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_task_starts_with_its_own_environment_after_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    api.set_queue("q", None, Some(true)).await.unwrap();
    let request =
        queued("q", daemon.script("env SECRET exit 0")).with_env([("SECRET", "xyzzy-plugh")]);
    let id = api.start(request).await.id;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let shown = format!(
        "{:?}",
        (api.inspect(&id).await.unwrap(), api.history().await)
    );
    assert!(!shown.contains("xyzzy-plugh"));
    api.set_queue("q", None, Some(false)).await.unwrap();
    assert_eq!(api.ended(&id).await.state(), TaskState::Completed);
    let output = String::from_utf8(api.output(&id).await).unwrap();
    assert!(output.contains("xyzzy-plugh"), "{output}");
    assert!(!daemon.log().contains("xyzzy-plugh"));
}

/// X1, O3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_long_poll_on_a_queued_task_returns_its_first_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    api.set_queue("q", None, Some(true)).await.unwrap();
    let id = api
        .start(queued("q", daemon.script("print begun forever")))
        .await
        .id;
    assert_eq!(api.output(&id).await, b"");
    let reader = api.poll(&id, 0);
    api.set_queue("q", None, Some(false)).await.unwrap();
    let answer = reader.await.unwrap();
    assert_eq!(heeler_tests::output::raw(&answer.chunks[0]), b"begun\n");
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_of_a_session_includes_its_queued_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let of = |request: SpawnRequest| request.with_session("s");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let request = of(queued("q", daemon.script("forever")));
        ids.push(api.start(request).await.id);
    }
    let answer = api.stop_session("s").await;
    assert_eq!(answer.results.len(), 3);
    assert_eq!(api.states(&ids).await, [TaskState::Cancelled; 3]);
    assert_eq!(api.queues().await, []);
    eventually("no process left", || daemon.processes().is_empty()).await;
}

/// X1, R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_stops_queued_tasks_or_leaves_them_to_the_next_server() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(api.start(queued("q", daemon.script("forever"))).await.id);
    }
    daemon.terminate();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.states(&ids).await, [Running, Queued, Queued]);
    let request = ShutdownRequest {
        tasks: ShutdownTasks::Stop.into(),
        ..Default::default()
    };
    api.shutdown(request).await.unwrap();
    daemon.ended();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.states(&ids).await, [TaskState::Cancelled; 3]);
}

/// X3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn session_and_label_limits_are_refused_with_the_numbers() {
    let daemon = Daemon::builder()
        .arg("--max-per-session")
        .arg("2")
        .arg("--max-per-label")
        .arg("repo=1")
        .start()
        .await;
    let api = daemon.api().await;
    let of = |session: &str, request: SpawnRequest| request.with_session(session);
    let labelled = |value: &str, request: SpawnRequest| request.with_labels([("repo", value)]);
    let first = api.start(of("s", daemon.script("forever"))).await;
    api.start(of("s", daemon.script("forever"))).await;
    api.start(of("t", labelled("heeler", daemon.script("forever"))))
        .await;
    let (revision, processes) = (api.revision().await, daemon.processes().len());

    let refused = api.spawn(of("s", argv(["true"]))).await;
    let refusal = Refusal::expect(refused, Code::ResourceExhausted, "SESSION_LIMIT_REACHED");
    assert_eq!((refusal.value("running"), refusal.value("max")), ("2", "2"));
    assert_eq!(refusal.value("session_id"), "s");
    let refused = api.spawn(of("u", labelled("heeler", argv(["true"])))).await;
    let refusal = Refusal::expect(refused, Code::ResourceExhausted, "LABEL_LIMIT_REACHED");
    assert_eq!((refusal.value("running"), refusal.value("max")), ("1", "1"));
    assert_eq!(
        (refusal.value("label"), refusal.value("value")),
        ("repo", "heeler")
    );
    assert_eq!(
        (api.revision().await, daemon.processes().len()),
        (revision, processes)
    );

    let other = api.start(of("u", labelled("other", argv(["true"])))).await;
    api.ended(&other.id).await;
    let unnamed = api.start(argv(["true"])).await;
    api.ended(&unnamed.id).await;
    let waits = api.start(of("s", queued("q", argv(["true"])))).await;
    assert_eq!(waits.state(), Queued, "a task with a queue waits");
    api.kill(&first.id).await;
    assert_eq!(api.ended(&waits.id).await.state(), TaskState::Completed);
    let next = api.start(of("s", argv(["true"]))).await;
    assert_eq!(next.state(), Running);
}

/// X3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn racing_spawns_never_exceed_a_sessions_limit() {
    let daemon = Daemon::builder()
        .arg("--max-per-session")
        .arg("3")
        .start()
        .await;
    let api = daemon.api().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let request = daemon.script("forever").with_session("s");
        let api = daemon.api().await;
        calls.spawn(async move { api.spawn(request).await });
    }
    let answers = calls.join_all().await;
    let started = answers.iter().filter(|answer| answer.is_ok()).count();
    assert_eq!((started, api.all().await.len()), (3, 3));
    for refused in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        assert_eq!(Refusal::of(refused).reason, "SESSION_LIMIT_REACHED");
    }
}

/// S11, X1: a queued task does not count as running.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn at_the_task_limit_a_queued_task_waits() {
    let daemon = Daemon::builder().max_tasks(2).start().await;
    let api = daemon.api().await;
    let first = api.start(daemon.script("forever")).await;
    api.start(daemon.script("forever")).await;
    let waits = api.start(queued("q", daemon.script("forever"))).await;
    assert_eq!(waits.state(), Queued);
    assert_eq!(api.server().await.live_tasks, 2);
    let refused = api.spawn(argv(["true"])).await;
    let refusal = Refusal::expect(refused, Code::ResourceExhausted, "TASK_LIMIT_REACHED");
    assert_eq!((refusal.value("running"), refusal.value("max")), ("2", "2"));
    api.kill(&first.id).await;
    api.until(&waits.id, Running).await;
    let replacing = exclusive("k", ExclusiveMode::Replace, argv(["true"]));
    let refused = api.spawn(replacing).await;
    Refusal::expect(refused, Code::ResourceExhausted, "TASK_LIMIT_REACHED");
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn three_hundred_queued_tasks_all_run_within_the_slots() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    api.set_queue("q", Some(8), Some(true)).await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let api = api.clone();
        calls.spawn(async move { api.start(queued("q", argv(["true"]))).await.id });
    }
    let ids = calls.join_all().await;
    assert_eq!(api.queues().await, [queue("q", 8, true, 0, 300)]);
    api.set_queue("q", None, Some(false)).await.unwrap();
    for id in &ids {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
    }
    let history = api.history().await;
    let mut running = 0;
    for event in &history {
        running += i32::from(event.r#type() == TaskEventType::Admitted);
        running -= i32::from(event.r#type() == TaskEventType::Ended);
        assert!(running <= 8, "more tasks than slots");
    }
}

/// X1, X2, R3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_queued_task_runs_once_across_many_crashes() {
    let mut daemon = Daemon::start().await;
    let follower = Follower::of(daemon.address());
    let mut api = daemon.api().await;
    api.set_queue("q", Some(3), None).await.unwrap();
    let mut ids = Vec::new();
    for number in 0..60 {
        let ran = daemon.file(&format!("ran-{number}"));
        let request = daemon.script(&format!("pids {ran} pid leader exit 0"));
        // Every fifth task also needs a key.
        let request = match number % 5 {
            0 => exclusive("k", ExclusiveMode::Queue, request),
            _ => request,
        };
        ids.push(api.start(queued("q", request)).await.id);
    }
    for target in [10, 11, 20, 30, 31, 32, 45] {
        api.ended(&ids[target]).await;
        daemon.kill9();
        daemon.restart().await;
        api = daemon.api().await;
    }
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
        let runs = daemon.line_count(&format!("ran-{number}"));
        assert_eq!(runs, 1, "number of runs of {id}");
    }
    let history = follower.assert_whole(&api).await;
    let mut running = 0;
    for event in &history {
        let begins = match event.r#type() == TaskEventType::Created {
            true => event
                .task
                .as_ref()
                .is_some_and(|task| task.state() != Queued),
            false => event.r#type() == TaskEventType::Admitted,
        };
        running += i32::from(begins);
        running -= i32::from(event.r#type() == TaskEventType::Ended);
        assert!(running <= 3, "more tasks than slots");
    }
}

/// R4: the journal has lost its latest entries.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_started_task_is_not_started_again_after_the_journal_lost_its_start() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    api.set_queue("q", None, Some(true)).await.unwrap();
    let ran = daemon.file("ran");
    let script = format!("pids {ran} pid leader print begun forever");
    let id = api.start(queued("q", daemon.script(&script))).await.id;
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    api.set_queue("q", None, Some(false)).await.unwrap();
    let leader = api.until(&id, Running).await.leader;
    daemon.terminate();
    daemon.restore_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&id).await;
    assert_eq!((task.state(), &task.leader), (Running, &leader));
    assert_eq!(
        api.queues().await,
        [queue("q", 1, true, 1, 0)],
        "the queue of the older journal"
    );
    eventually("the leader to run", || daemon.path("ran").exists()).await;
    api.kill(&id).await;
    assert_eq!(daemon.line_count("ran"), 1, "number of runs");
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_command_shows_and_changes_queues() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    assert_eq!(daemon.heeler(["queue"]).await.ok().stdout, "");
    let paused = daemon
        .heeler(["queue", "q", "--slots", "3", "--pause"])
        .await
        .ok();
    let row: Vec<&str> = paused
        .stdout
        .lines()
        .nth(1)
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(row, ["q", "3", "0", "0", "yes"]);
    let waiting = daemon
        .spawned(&["--queue", "q", "--", "sleep", "1000"])
        .await;
    assert_eq!(api.task(&waiting).await.state(), Queued);
    let listed = daemon.heeler(["queue", "--json"]).await.ok().json();
    let expected = serde_json::json!({"queues": [
        {"name": "q", "slots": 3, "paused": true, "running": 0, "waiting": 1}
    ]});
    assert_eq!(listed, expected);
    let resumed = daemon
        .heeler(["queue", "q", "--resume", "--json"])
        .await
        .ok()
        .json();
    assert_eq!(resumed["queue"]["running"], 1);
    api.until(&waiting, Running).await;

    let dev = ["--exclusive", "dev", "--", "sleep", "1000"];
    let holder = daemon.spawned(&dev).await;
    let result = daemon.heeler(["spawn"].iter().chain(&dev)).await;
    assert_ne!(result.code, Some(0));
    assert!(result.stderr.contains(&holder), "{result:?}");
    let next = daemon
        .spawned(&["--on-held", "queue", "--exclusive", "dev", "--", "true"])
        .await;
    assert_eq!(api.task(&next).await.state(), Queued);
    let replaces: Vec<&str> = ["--on-held", "replace"].into_iter().chain(dev).collect();
    let newest = daemon.spawned(&replaces).await;
    assert_eq!(api.task(&newest).await.state(), Running);
    assert_eq!(api.task(&holder).await.end_reason(), EndReason::Replaced);
    let result = daemon
        .heeler(["spawn", "--on-held", "queue", "--", "true"])
        .await;
    assert!(result.stderr.contains("--exclusive"), "{result:?}");
}
