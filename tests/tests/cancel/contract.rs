//! The answer of a cancel, its record, and callers that leave: the same on every containment.

use std::time::Duration;

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, TaskSpecExt as _, argv, micros, millis,
    outcome::{proof_of, survivors},
    request::{cancel, force, grace},
    secs,
    v1::{outcome::Result as Ended, *},
    watch::task_of,
};
use tonic::Code;

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_finished_task_is_already_finished_and_unchanged() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["true"])).await;
    let task = api.ended(&task.id).await;
    for how in [None, force()] {
        let result = api.stop_by(&task.id, how).await;
        assert_eq!(result.outcome(), CancelOutcome::AlreadyFinished);
        assert_eq!(result.task.as_ref(), Some(&task), "the task has changed");
        assert!(result.task.unwrap().stop.is_none());
    }
    assert_eq!(api.revision().await, task.revision, "an event was recorded");
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unknown_or_removed_id_is_not_found() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let removed = api.start(argv(["true"])).await.id;
    api.ended(&removed).await;
    api.remove([&removed]).await.unwrap();
    for id in [
        removed.as_str(),
        "shell-aaaaaaaaaa",
        "not an id",
        "../shell-aaaaaaaaaa",
    ] {
        let refusal = Refusal::expect(
            api.cancel(cancel(id)).await,
            Code::NotFound,
            "TASK_NOT_FOUND",
        );
        assert_eq!(refusal.value("task_id"), id);
    }
}

/// C11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn actor_reason_time_and_signals_are_in_the_task_and_its_events() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let request = CancelRequest {
        reason: "the user pressed stop".into(),
        actor: "host/1.2".into(),
        wait: true,
        ..cancel(&fixture.id)
    };
    let task = api.cancel_one(request).await.task.unwrap();
    let history = api.history_of(&fixture.id).await;
    let stopping = history
        .iter()
        .find(|event| event.r#type() == TaskEventType::Stopping)
        .unwrap();
    assert_eq!(task_of(stopping).state(), TaskState::Stopping);
    for shown in [&task, task_of(stopping), task_of(history.last().unwrap())] {
        let stop = shown.stop.as_ref().unwrap();
        assert_eq!(
            (stop.cause(), &*stop.reason),
            (EndReason::Cancelled, "the user pressed stop")
        );
        let actor = stop.actor.as_ref().unwrap();
        assert_eq!(
            (&*actor.name, actor.uid),
            ("host/1.2", Some(nix::unistd::getuid().as_raw()))
        );
        assert_eq!(actor.pid, Some(std::process::id() as i32));
        assert!(micros(&stop.request_time) >= micros(&shown.start_time));
    }
    let sent = &task.stop.as_ref().unwrap().signals;
    assert_eq!((sent[0].number, &*sent[0].name), (15, "SIGTERM"));
    assert_eq!(sent[0].processes, Some(1));
    assert!(micros(&sent[0].send_time) >= micros(&task.stop.as_ref().unwrap().request_time));
}

/// C11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_blank_reason_or_actor_is_empty() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let request = CancelRequest {
        reason: " \t\n".into(),
        actor: "  ".into(),
        wait: true,
        ..cancel(&fixture.id)
    };
    let stop = api.cancel_one(request).await.task.unwrap().stop.unwrap();
    assert_eq!((&*stop.reason, &*stop.actor.unwrap().name), ("", ""));
}

/// C12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cascade_ends_the_spawned_tasks_before_the_parents_own_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let parent = daemon.run(&api, "forever").await;
    let below = |id: &str| SpawnRequest::default().with_parent(id);
    let mut child = daemon
        .run_as(&api, below(&parent.id), "ignore TERM pid ready forever")
        .await;
    child.process("ready").await;
    let mut grandchild = daemon.run_as(&api, below(&child.id), "forever").await;
    let other = daemon.run(&api, "forever").await;
    let revision = api.revision().await;
    let request = CancelRequest {
        cascade: true,
        wait: true,
        how: grace(millis(300)),
        ..cancel(&parent.id)
    };
    let answer = api.cancel(request).await.unwrap();
    assert!(
        answer
            .results
            .iter()
            .any(|one| one.task.as_ref().unwrap().id == parent.id)
    );
    child.assert_gone();
    grandchild.assert_gone();
    let newest = api.revision().await;
    let events = api.watch_after(revision).await.up_to(newest).await;
    let ends = events
        .iter()
        .filter(|event| event.r#type() == TaskEventType::Ended);
    let order: Vec<&str> = ends.map(|event| task_of(event).id.as_str()).collect();
    assert_eq!(order, [&*grandchild.id, &*child.id, &*parent.id]);
    assert_eq!(api.task(&child.id).await.state(), TaskState::Cancelled);
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
}

/// C12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_cascade_the_spawned_tasks_go_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut parent = daemon.run(&api, "forever").await;
    let request = SpawnRequest::default().with_parent(parent.id.clone());
    let child = daemon.run_as(&api, request, "forever").await;
    api.stop(&parent.id).await;
    parent.assert_gone();
    let task = api.task(&child.id).await;
    assert_eq!(
        (task.state(), task.parent()),
        (TaskState::Running, &*parent.id)
    );
}

/// C13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_finishes_a_cancel_on_the_first_servers_clock() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    // The file appears two seconds into the grace, which the next server must not restart.
    let marker = daemon.path("two-seconds-later");
    let script = format!(
        "trap TERM [ sleep 2000 touch {} ] pid ready forever",
        marker.display()
    );
    let mut fixture = daemon.run(&api, &script).await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: grace(secs(6)),
        reason: "kept".into(),
        ..cancel(&fixture.id)
    };
    let asked = api.cancel_one(request).await.task.unwrap().stop.unwrap();
    heeler_tests::eventually("two seconds of the grace", || marker.exists()).await;
    daemon.kill9();
    let restarted = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    daemon.restart().await;

    let api = daemon.api().await;
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(task.state(), TaskState::Cancelled);
    let stop = task.stop.unwrap();
    assert_eq!(
        (&stop.request_time, &*stop.reason),
        (&asked.request_time, "kept")
    );
    let kill = stop
        .signals
        .iter()
        .find(|signal| signal.name == "SIGKILL")
        .expect("a kill");
    let killed = micros(&kill.send_time);
    assert!(
        killed - micros(&stop.request_time) >= 6_000_000,
        "killed before the end of the grace"
    );
    let restarted_grace = restarted.as_micros() as i64 + 6_000_000;
    assert!(killed < restarted_grace, "the grace was restarted");
}

/// C14: a tracer keeps a dead process from being reaped, so the tree is not gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_overdue_kill_names_the_survivors_and_goes_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "fork [ pid child forever ] forever").await;
    let child = fixture.process("child").await;
    let ready = daemon.path("traced");
    let mut tracer = std::process::Command::new(daemon.fixture_program())
        .args(["seize", &child.pid.to_string(), "touch"])
        .arg(&ready)
        .arg("forever")
        .spawn()
        .unwrap();
    heeler_tests::eventually("a traced child", || ready.exists()).await;
    let asked = CancelRequest {
        how: force(),
        ..cancel(&fixture.id)
    };
    api.cancel_one(asked).await;
    let mut watch = api.watch_after(0).await;
    let overdue = watch
        .until_of(&fixture.id, TaskEventType::KillOverdue)
        .await;
    let task = task_of(overdue.last().unwrap());
    assert_eq!(task.state(), TaskState::Stopping);
    assert_eq!(survivors(task), [child.pid], "{task:?}");

    tracer.kill().unwrap();
    tracer.wait().unwrap();
    let task = api.ended(&fixture.id).await;
    assert!(child.is_gone());
    assert_eq!(task.state(), TaskState::Cancelled);
    proof_of(&task);
}

/// C14
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_proof_is_absent_while_the_tree_lives_and_has_one_result_after_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let received = daemon.path("received");
    let script = format!(
        "trap TERM [ touch {} ] pid ready forever",
        received.display()
    );
    let mut fixture = daemon.run(&api, &script).await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: grace(secs(600)),
        ..cancel(&fixture.id)
    };
    let asked = api.cancel_one(request).await.task.unwrap();
    assert_eq!(asked.state(), TaskState::Stopping);
    assert_eq!(asked.stop.unwrap().proof, None, "nothing was checked yet");
    heeler_tests::eventually("a received SIGTERM", || received.exists()).await;

    let stop = api.kill(&fixture.id).await.task.unwrap().stop.unwrap();
    fixture.assert_gone();
    let proof = stop.proof.unwrap();
    assert!(micros(&proof.check_time) >= micros(&stop.request_time));
    assert!(
        matches!(proof.result, Some(proof::Result::Proven(_))),
        "{proof:?}"
    );
    let sent = |name: &str| {
        let sent = stop.signals.iter().find(|signal| signal.name == name);
        sent.unwrap_or_else(|| panic!("no {name}: {:?}", stop.signals))
            .processes
    };
    assert_eq!(sent("SIGTERM"), Some(1));
    assert_eq!(
        sent("SIGKILL"),
        None,
        "a kill of the whole tree counts no processes"
    );
}

/// C15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_goes_on_after_the_callers_deadline() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: grace(secs(2)),
        wait: true,
        ..cancel(&fixture.id)
    };
    let mut request = tonic::Request::new(request);
    request.set_timeout(Duration::from_millis(300));
    let status = api.raw().cancel(request).await.unwrap_err();
    assert!(
        [Code::DeadlineExceeded, Code::Cancelled].contains(&status.code()),
        "{status:?}"
    );
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(task.state(), TaskState::Cancelled);
}

/// C15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_goes_on_after_the_callers_disconnect() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let request = CancelRequest {
        how: grace(secs(1)),
        wait: true,
        ..cancel(&fixture.id)
    };
    let caller = daemon.api().await;
    let call = tokio::spawn(async move { caller.cancel(request).await });
    let mut watch = api.watch_after(0).await;
    watch.until_of(&fixture.id, TaskEventType::Stopping).await;
    call.abort();
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(task.state(), TaskState::Cancelled);
    assert!(
        call.await.unwrap_err().is_cancelled(),
        "the caller was still there"
    );
}

/// S14
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cancel_while_starting_leaves_no_process() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    const TASKS: usize = 24;
    let mut watch = api.watch_after(0).await;
    let mut spawns = tokio::task::JoinSet::new();
    for _ in 0..TASKS {
        let (api, request) = (api.clone(), daemon.script("ignore TERM forever"));
        spawns.spawn(async move { api.spawn(request).await });
    }
    // Each task is cancelled at its CREATED event, before its leader runs.
    let mut cancels = tokio::task::JoinSet::new();
    while cancels.len() < TASKS {
        let event = watch.event().await;
        if event.r#type() == TaskEventType::Created {
            let (api, id) = (api.clone(), task_of(&event).id.clone());
            cancels.spawn(async move { api.kill(&id).await });
        }
    }
    for result in cancels.join_all().await {
        let task = result.task.unwrap();
        assert_eq!(task.state(), TaskState::Cancelled, "{task:?}");
        proof_of(&task);
        if let Some(Ended::ExitCode(code)) = task.outcome.and_then(|outcome| outcome.result) {
            panic!("it ran to its own end: {code}");
        }
        let history = api.event_types(&task.id).await;
        assert_eq!(history.first(), Some(&TaskEventType::Created));
        assert_eq!(history.last(), Some(&TaskEventType::Ended), "{history:?}");
    }
    spawns.join_all().await;
    daemon.no_processes().await;
    assert_eq!(api.server().await.live_tasks, 0);
}
