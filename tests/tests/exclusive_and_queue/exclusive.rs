//! Exclusive keys: at most one live task per key.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, TaskSpecExt as _, argv, eventually, exclusive,
    outcome::proof_of,
    queued,
    request::{cancel, force},
    v1::*,
};
use tonic::Code;

use super::gated;
use ExclusiveMode::{Queue, Reject};

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn reject_names_the_holder_of_the_key() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let holder = api
        .start(exclusive("dev", Reject, daemon.script("forever")))
        .await;
    assert_eq!(holder.exclusive_key(), "dev");
    let (revision, processes) = (api.revision().await, daemon.processes().len());
    let refused = api.spawn(exclusive("dev", Reject, argv(["true"]))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    assert_eq!(
        (refusal.value("exclusive_key"), refusal.value("task_id")),
        ("dev", &*holder.id)
    );
    assert_eq!(
        (api.revision().await, daemon.processes().len()),
        (revision, processes)
    );
    api.start(exclusive("another", Reject, argv(["true"])))
        .await;
    api.kill(&holder.id).await;
    let next = api.start(exclusive("dev", Reject, argv(["true"]))).await;
    assert_eq!(next.state(), TaskState::Running);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn queued_tasks_get_the_key_in_order_of_arrival() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let mut ids = Vec::new();
    for position in 0..5 {
        let task = api
            .start(exclusive("k", Queue, gated(&daemon, "gate")))
            .await;
        let expected = match position {
            0 => TaskState::Running,
            _ => TaskState::Queued,
        };
        assert_eq!(task.state(), expected);
        ids.push(task.id);
    }
    let refused = api.spawn(exclusive("k", Reject, argv(["true"]))).await;
    Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    gate.open();
    for id in &ids {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
        assert_eq!(api.lines(id).await, ["begun"]);
    }
    api.assert_one_after_the_other(&ids).await;
    use TaskEventType::{Admitted, Created, Ended, Started};
    assert_eq!(api.event_types(&ids[0]).await, [Created, Started, Ended]);
    assert_eq!(
        api.event_types(&ids[4]).await,
        [Created, Admitted, Started, Ended]
    );
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_task_can_be_cancelled_and_never_runs() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let holder = api
        .start(exclusive("k", Queue, gated(&daemon, "gate")))
        .await;
    let ran = format!("pids {} pid leader exit 0", daemon.file("ran"));
    let waiting = api.start(exclusive("k", Queue, daemon.script(&ran))).await;
    let behind = api.start(exclusive("k", Queue, argv(["true"]))).await;
    let processes = daemon.processes().len();
    for how in [None, force()] {
        let result = api.stop_by(&waiting.id, how).await;
        let task = result.task.unwrap();
        assert_eq!(
            (task.state(), task.end_reason()),
            (TaskState::Cancelled, EndReason::Cancelled)
        );
        assert_eq!(proof_of(&task), ProofMethod::NeverStarted);
        assert_eq!(
            (task.leader, task.start_time, task.outcome),
            (None, None, None)
        );
    }
    assert_eq!(daemon.processes().len(), processes);
    assert_eq!(api.task(&behind.id).await.state(), TaskState::Queued);
    gate.open();
    api.ended(&behind.id).await;
    api.assert_one_after_the_other(&[holder.id, behind.id])
        .await;
    assert!(!daemon.path("ran").exists());
    use TaskEventType::{Created, Ended, Stopping};
    let history = api.event_types(&waiting.id).await;
    assert_eq!(history, [Created, Stopping, Ended]);
}

/// X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_is_freed_by_the_end_of_the_tree_and_not_by_the_leaders_exit() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "fork [ setsid pid hidden gate {} ] exit 0",
        daemon.file("gate")
    );
    let request = exclusive("k", Reject, SpawnRequest::default());
    let holder = daemon.run_as(&api, request, &script).await;
    let waiting = api.start(exclusive("k", Queue, argv(["true"]))).await;
    let mut watch = api.watch_after(0).await;
    watch
        .until_of(&holder.id, TaskEventType::LeaderExited)
        .await;
    let refused = api.spawn(exclusive("k", Reject, argv(["true"]))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    assert_eq!(refusal.value("task_id"), holder.id);
    assert_eq!(api.task(&waiting.id).await.state(), TaskState::Queued);
    gate.open();
    api.ended(&waiting.id).await;
    api.assert_one_after_the_other(&[holder.id, waiting.id])
        .await;
}

/// X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_fifty_racing_claims_one_wins() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..3 {
        let key = format!("k{round}");
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (api, request) = (daemon.api().await, daemon.script("forever"));
            let request = exclusive(&key, Reject, request);
            calls.spawn(async move { api.spawn(request).await });
        }
        let mut winner = None;
        let mut named = Vec::new();
        while let Some(answer) = calls.join_next().await {
            match answer.unwrap() {
                Ok(answer) => assert!(winner.replace(answer.task.unwrap().id).is_none()),
                Err(status) => {
                    let refusal = Refusal::of(&status);
                    assert_eq!(refusal.reason, "EXCLUSIVE_KEY_HELD");
                    named.push(refusal.value("task_id").to_owned());
                }
            }
        }
        let winner = winner.expect("one winner");
        assert_eq!(named.len(), 49);
        assert!(named.iter().all(|name| *name == winner), "{named:?}");
        api.kill(&winner).await;
    }
    assert_eq!(api.all().await.len(), 3);
}

/// X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn fifty_racing_queued_tasks_run_one_after_the_other() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let api = daemon.api().await;
        let request = exclusive("k", Queue, argv(["true"]));
        calls.spawn(async move { api.start(request).await });
    }
    calls.join_all().await;
    // List has the newest first.
    let mut ids: Vec<String> = api.all().await.into_iter().map(|task| task.id).collect();
    ids.reverse();
    assert_eq!(ids.len(), 50);
    for id in &ids {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
    }
    let history = api.history().await;
    let mut running: Option<&str> = None;
    let mut order = Vec::new();
    for event in &history {
        let id = event.task.as_ref().unwrap().id.as_str();
        if event.r#type() == TaskEventType::Started {
            assert_eq!(running.replace(id), None, "two tasks with the key at once");
            order.push(id.to_owned());
        } else if event.r#type() == TaskEventType::Ended {
            assert_eq!(running.take(), Some(id));
        }
    }
    assert_eq!(order, ids, "not in order of arrival");
}

/// X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_key_survives_a_crash_with_its_holder_and_its_queue() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let mut ids = Vec::new();
    for _ in 0..4 {
        let task = api
            .start(exclusive("k", Queue, gated(&daemon, "gate")))
            .await;
        ids.push(task.id);
    }
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    use TaskState::{Queued, Running};
    assert_eq!(api.states(&ids).await, [Running, Queued, Queued, Queued]);
    let refused = api.spawn(exclusive("k", Reject, argv(["true"]))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    assert_eq!(refusal.value("task_id"), ids[0]);
    let last = api.start(exclusive("k", Queue, argv(["true"]))).await;
    ids.push(last.id);
    daemon.kill9();
    gate.open();
    daemon.restart().await;
    let api = daemon.api().await;
    for id in &ids {
        assert_eq!(api.ended(id).await.state(), TaskState::Completed);
    }
    api.assert_one_after_the_other(&ids).await;
}

/// X1, X2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_id_of_a_task_is_a_key_that_it_holds_also_after_a_crash() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let first = api.start(gated(&daemon, "gate")).await.id;
    let refused = api.spawn(exclusive(&first, Reject, argv(["true"]))).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EXCLUSIVE_KEY_HELD");
    assert_eq!(refusal.value("task_id"), first);
    let second = api.start(exclusive(&first, Queue, argv(["true"]))).await;
    let third = api
        .start(exclusive(&second.id, Queue, argv(["true"])))
        .await;
    let ids = [first, second.id, third.id];
    use TaskState::{Queued, Running};
    assert_eq!(api.states(&ids).await, [Running, Queued, Queued]);
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.states(&ids).await, [Running, Queued, Queued]);
    gate.open();
    api.ended(&ids[2]).await;
    api.assert_one_after_the_other(&ids).await;
}

/// S9, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_repeated_request_of_a_queued_task_gives_the_first_answer() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    api.start(exclusive("k", Queue, gated(&daemon, "gate")))
        .await;
    let request = exclusive("k", Queue, daemon.script("print once exit 0")).with_request_id("once");
    let first = api.spawn(request.clone()).await.unwrap();
    let task = first.task.clone().unwrap();
    assert_eq!(task.state(), TaskState::Queued);
    assert_eq!(
        api.spawn(request.clone()).await.unwrap(),
        first,
        "while it is queued"
    );
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(
        api.spawn(request.clone()).await.unwrap(),
        first,
        "after a crash"
    );
    gate.open();
    api.ended(&task.id).await;
    assert_eq!(
        api.spawn(request.clone()).await.unwrap(),
        first,
        "after its end"
    );
    assert_eq!(api.all().await.len(), 2);
    assert_eq!(api.lines(&task.id).await, ["once"]);
    let other = request.with_exclusive_key("l");
    let refused = api.spawn(other).await;
    Refusal::expect(refused, Code::AlreadyExists, "REQUEST_ID_REUSED");
}

/// X1: program and directory are checked again on admission.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_program_or_directory_removed_during_the_wait_is_a_spawn_error() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    api.start(exclusive("k", Queue, gated(&daemon, "gate")))
        .await;
    let (program, directory) = (daemon.path("program"), daemon.path("directory"));
    std::fs::copy("/bin/true", &program).unwrap();
    std::fs::create_dir(&directory).unwrap();
    let without_program = argv([program.to_str().unwrap()]);
    let without_directory = argv(["true"]).with_working_directory(directory.to_str().unwrap());
    let mut ids = Vec::new();
    for request in [without_program, without_directory, argv(["true"])] {
        ids.push(api.start(exclusive("k", Queue, request)).await.id);
    }
    std::fs::remove_file(&program).unwrap();
    std::fs::remove_dir(&directory).unwrap();
    gate.open();
    for id in &ids[..2] {
        let task = api.ended(id).await;
        assert_eq!(
            (task.state(), task.end_reason()),
            (TaskState::Failed, EndReason::SpawnFailed)
        );
        let outcome::Result::SpawnError(error) = heeler_tests::outcome::outcome(&task) else {
            panic!("not a spawn error: {task:?}")
        };
        assert!(error.message.contains("No such file"), "{error:?}");
        use TaskEventType::{Admitted, Created, Ended};
        assert_eq!(api.event_types(id).await, [Created, Admitted, Ended]);
    }
    assert_eq!(api.ended(&ids[2]).await.state(), TaskState::Completed);
}

/// X1, F1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_foreground_task_can_be_detached() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    api.start(exclusive("k", Queue, gated(&daemon, "gate")))
        .await;
    let request = exclusive("k", Queue, daemon.script("print begun exit 0")).in_foreground();
    let waiting = api.start(request).await;
    let task = api.detach_one(&waiting.id).await.task.unwrap();
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Queued, Placement::Background)
    );
    gate.open();
    let task = api.ended(&waiting.id).await;
    assert_eq!(task.state(), TaskState::Completed);
    assert_eq!(api.lines(&task.id).await, ["begun"]);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_with_a_key_and_a_queue_waits_for_both() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let [key, slot] = ["key-gate", "slot-gate"].map(|name| daemon.gate(name));
    let holder = api
        .start(exclusive("k", Reject, gated(&daemon, "key-gate")))
        .await;
    let runner = api.start(queued("q", gated(&daemon, "slot-gate"))).await;
    let both = queued("q", exclusive("k", Queue, argv(["true"])));
    let both = api.start(both).await;
    assert_eq!(both.state(), TaskState::Queued);
    key.open();
    api.ended(&holder.id).await;
    assert_eq!(api.task(&both.id).await.state(), TaskState::Queued);
    slot.open();
    api.ended(&both.id).await;
    api.assert_one_after_the_other(&[runner.id, both.id]).await;
}

/// X1, C12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn cascade_stops_a_queued_child() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let parent = api
        .start(exclusive("k", Reject, daemon.script("forever")))
        .await;
    let child = exclusive("k", Queue, daemon.script("forever")).with_parent(parent.id.clone());
    let child = api.start(child).await;
    let request = CancelRequest {
        cascade: true,
        wait: true,
        ..cancel(&parent.id)
    };
    api.cancel_one(request).await;
    let child = api.task(&child.id).await;
    assert_eq!(
        (child.state(), child.start_time),
        (TaskState::Cancelled, None)
    );
    eventually("no process left", || daemon.processes().is_empty()).await;
}
