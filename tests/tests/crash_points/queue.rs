//! Admission: from the end of the holder to the start of the next task; and replacing a holder: from
//! before its record to the start of the new task.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv, eventually, exclusive,
    history::revision_of,
    millis,
    outcome::{exit_code, proof_of},
    queued,
    v1::*,
};

use crate::{at_each_point, doomed, restart_after, runs};

at_each_point! { an_admission_interrupted:
    before_the_holders_end_is_committed => "journal.before-commit:5", ();
    after_the_holders_end_is_committed => "journal.committed:5", ();
    before_the_next_is_admitted => "queue.freed:1", ();
    before_its_admission_is_recorded => "queue.before-admitted:1", ();
    before_its_admission_is_committed => "journal.before-commit:6", ();
    after_its_admission_is_committed => "journal.committed:6", ();
    before_it_is_launched => "queue.admitted:1", ();
    after_it_is_launched => "spawn.shim-launched:2", ();
    after_its_start_is_seen => "spawn.start-seen:2", ();
    before_its_start_is_committed => "journal.before-commit:7", ();
    after_its_start_is_committed => "journal.committed:7", ();
}

/// Starts a holder of a key that runs until its gate is opened, and two tasks in its queue.
async fn scene(daemon: &Daemon, api: &Api) -> [String; 3] {
    let mode = ExclusiveMode::Queue;
    let holder = daemon.script(&format!("gate {} exit 0", daemon.file("gate")));
    let ran = daemon.file("ran");
    // Without a request id, the command is durable too.
    let next = daemon
        .script(&format!("pids {ran} pid leader env MOOD exit 7"))
        .with_env([("MOOD", "patient")]);
    let mut ids = Vec::new();
    for request in [holder, next, argv(["true"])] {
        ids.push(api.start(exclusive("k", mode, request)).await.id);
    }
    ids.try_into().unwrap()
}

/// Asserts that both queued tasks ran once and in order, the first one with its environment.
async fn assert_all_ran(daemon: &Daemon, api: &Api, [holder, next, last]: &[String; 3]) {
    let task = api.ended(next).await;
    assert_eq!(exit_code(&task), 7);
    assert_eq!(runs(daemon), 1, "number of runs");
    let output = String::from_utf8(api.output(next).await).unwrap();
    assert!(output.contains("patient"), "{output}");
    assert_eq!(api.ended(last).await.state(), TaskState::Completed);
    use TaskEventType::{Admitted, Created, Ended as End, Started};
    assert_eq!(api.event_types(holder).await, [Created, Started, End]);
    for id in [next, last] {
        let history = api.event_types(id).await;
        assert_eq!(history, [Created, Admitted, Started, End]);
    }
    assert_eq!(api.all().await.len(), 3);
    daemon.no_processes().await;
}

/// R3, X2, E2
async fn an_admission_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let ids = scene(&daemon, &api).await;
    gate.open();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    assert_all_ran(&daemon, &api, &ids).await;
    follower.assert_whole(&api).await;
}

at_each_point! { a_start_interrupted_twice:
    before_it_is_launched_again => "queue.launch-once-more", ();
    after_it_is_launched_again => "spawn.shim-launched:1", ();
}

/// R3, X2: one server records the admission, and the next one dies before or during the start.
async fn a_start_interrupted_twice(point: &str, (): ()) {
    let (mut daemon, follower) = doomed("queue.admitted").await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let ids = scene(&daemon, &api).await;
    gate.open();
    assert_eq!(daemon.died(), "queue.admitted");
    daemon.die_at(point);
    daemon.launch();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    assert_all_ran(&daemon, &api, &ids).await;
    follower.assert_whole(&api).await;
}

/// R3, X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_queued_task_whose_cancel_is_interrupted_never_runs() {
    if !heeler_tests::crash::points_are_built_in() {
        return heeler_tests::skipped("this build has no crash points");
    }
    let point = "journal.committed:5";
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let [holder, next, last] = scene(&daemon, &api).await;
    api.cancel(heeler_tests::request::cancel(&next))
        .await
        .unwrap_err();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    let task = api.ended(&next).await;
    assert_eq!((task.state(), task.leader), (TaskState::Cancelled, None));
    assert_eq!(proof_of(&task), ProofMethod::NeverStarted);
    gate.open();
    assert_eq!(api.ended(&holder).await.state(), TaskState::Completed);
    assert_eq!(api.ended(&last).await.state(), TaskState::Completed);
    assert_eq!(runs(&daemon), 0);
    follower.assert_whole(&api).await;
}

/// The progress of the replacement at the death.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Not recorded: the holder goes on until the request is repeated.
    Nowhere,
    /// Recorded: the next server continues it by itself.
    Recorded,
}

at_each_point! { a_replacement_interrupted:
    before_the_intent_is_committed => "journal.before-commit:3", Got::Nowhere;
    after_the_intent_is_committed => "journal.committed:3", Got::Recorded;
    before_the_holder_is_asked => "spawn.intent-recorded:2", Got::Recorded;
    before_the_stop_is_recorded => "cancel.before-intent", Got::Recorded;
    before_the_stop_is_committed => "journal.before-commit:4", Got::Recorded;
    after_the_stop_is_committed => "journal.committed:4", Got::Recorded;
    after_the_signal => "cancel.signal-ordered", Got::Recorded;
    after_the_kill => "cancel.kill-ordered", Got::Recorded;
    before_the_holders_end_is_recorded => "end.seen", Got::Recorded;
    after_the_holders_end_is_recorded => "queue.freed", Got::Recorded;
    before_its_admission => "queue.before-admitted", Got::Recorded;
    before_its_launch => "queue.admitted", Got::Recorded;
    after_its_launch => "spawn.shim-launched:2", Got::Recorded;
    before_the_answer => "spawn.started-recorded:2", Got::Recorded;
}

/// R3, X1, X2, S9
async fn a_replacement_interrupted(point: &str, got: Got) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let request =
        exclusive("k", ExclusiveMode::Reject, SpawnRequest::default()).with_grace(millis(200));
    let script = "ignore TERM fork [ setsid pid hidden forever ] pid ready forever";
    let mut holder = daemon.run_as(&api, request, script).await;
    holder.processes(&["ready", "hidden"]).await;
    let ran = daemon.file("ran");
    let request = daemon
        .script(&format!("pids {ran} pid leader forever"))
        .with_request_id("once");
    let request = exclusive("k", ExclusiveMode::Replace, request);
    let answer = api.spawn(request.clone()).await;
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    if got == Got::Nowhere {
        let task = api.task(&holder.id).await;
        assert_eq!((task.state(), task.stop), (TaskState::Running, None));
    } else {
        let task = api.ended(&holder.id).await;
        assert_eq!(
            task.end_reason(),
            EndReason::Replaced,
            "not continued by itself"
        );
    }
    let first = api.spawn(request.clone()).await.unwrap();
    holder.assert_gone();
    assert_eq!(
        api.spawn(request).await.unwrap(),
        first,
        "the repeated request"
    );
    let task = first.task.unwrap();
    assert_eq!(task.state(), TaskState::Running);
    eventually("the leader to run", || runs(&daemon) > 0).await;
    api.kill(&task.id).await;
    assert_eq!(runs(&daemon), 1, "number of runs");
    assert_eq!(api.all().await.len(), 2);
    let history = api.history().await;
    let gone = revision_of(&history, &holder.id, TaskEventType::Ended);
    let started = revision_of(&history, &task.id, TaskEventType::Started);
    assert!(gone.unwrap() < started.unwrap());
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

at_each_point! { an_update_of_a_queue_interrupted:
    after_it_is_recorded => "queue.recorded:2", ();
}

/// R3, X1
async fn an_update_of_a_queue_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    api.set_queue("q", Some(4), Some(true)).await.unwrap();
    let waiting = api.start(queued("q", argv(["true"]))).await;
    api.set_queue("q", None, Some(false)).await.unwrap_err();
    restart_after(&mut daemon, point).await;
    let api = daemon.api().await;
    assert_eq!(api.ended(&waiting.id).await.state(), TaskState::Completed);
    let queues = api.queues().await;
    assert_eq!((queues[0].slots, queues[0].paused), (4, false));
    follower.assert_whole(&api).await;
}
