//! Waiting for a turn, from the end of the holder to the start of whoever is next; and replacing a
//! holder, from before the intent to the start of the new one.

use std::fs;

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv, eventually, exclusive, millis, queued,
    v1::{outcome::Result as Ended, *},
    watch::types,
};

use crate::{at_each_point, doomed, outlive};

at_each_point! { a_turn_cut_short:
    before_the_holders_end_is_committed => "journal.before-commit:5", ();
    after_the_holders_end_is_committed => "journal.committed:5", ();
    before_the_next_is_told => "queue.freed:1", ();
    before_its_turn_is_recorded => "queue.turn-come:1", ();
    before_its_turn_is_committed => "journal.before-commit:6", ();
    after_its_turn_is_committed => "journal.committed:6", ();
    before_it_is_launched => "queue.admitted:1", ();
    after_it_is_launched => "spawn.shim-launched:2", ();
    after_its_start_is_seen => "spawn.start-seen:2", ();
    before_its_start_is_committed => "journal.before-commit:7", ();
    after_its_start_is_committed => "journal.committed:7", ();
}

/// A holder of a key that runs until its gate is opened, and two that wait for it.
async fn scene(daemon: &Daemon, api: &Api) -> [String; 3] {
    let mode = ExclusiveMode::Queue;
    let holder = daemon.script(&format!("gate {} exit 0", daemon.file("gate")));
    let ran = daemon.file("ran");
    // Without a request id: what it is to run is durable all the same.
    let next = daemon
        .script(&format!("pids {ran} pid leader env MOOD exit 7"))
        .with_env([("MOOD", "patient")]);
    let mut ids = Vec::new();
    for request in [holder, next, argv(["true"])] {
        ids.push(api.start(exclusive("k", mode, request)).await.id);
    }
    ids.try_into().unwrap()
}

/// That the one that waited has run once, with all that it was given, and then the one behind it.
async fn all_had_their_turn(daemon: &Daemon, api: &Api, [holder, next, last]: &[String; 3]) {
    let task = api.ended(next).await;
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    assert_eq!(runs(daemon), 1, "how often it ran");
    let output = String::from_utf8(api.output(next).await).unwrap();
    assert!(output.contains("patient"), "{output}");
    assert_eq!(api.ended(last).await.state(), TaskState::Completed);
    use TaskEventType::{Admitted, Created, Ended as End, Started};
    assert_eq!(
        types(&api.history_of(holder).await),
        [Created, Started, End]
    );
    for id in [next, last] {
        let history = types(&api.history_of(id).await);
        assert_eq!(history, [Created, Admitted, Started, End]);
    }
    assert_eq!(api.all().await.len(), 3);
    daemon.no_processes().await;
}

/// R3, X2, E2
async fn a_turn_cut_short(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let ids = scene(&daemon, &api).await;
    gate.open();
    outlive(&mut daemon, point).await;
    let api = daemon.api().await;
    all_had_their_turn(&daemon, &api, &ids).await;
    follower.assert_whole(&api).await;
}

at_each_point! { a_start_that_two_servers_did_not_come_to:
    before_it_is_launched_again => "queue.launch-again", ();
    after_it_is_launched_again => "spawn.shim-launched:1", ();
}

/// R3, X2: its turn was recorded by one server, and the next dies before, or as, it starts it.
async fn a_start_that_two_servers_did_not_come_to(point: &str, (): ()) {
    let (mut daemon, follower) = doomed("queue.admitted").await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let ids = scene(&daemon, &api).await;
    gate.open();
    assert_eq!(daemon.died(), "queue.admitted");
    daemon.die_at(point);
    daemon.launch();
    outlive(&mut daemon, point).await;
    let api = daemon.api().await;
    all_had_their_turn(&daemon, &api, &ids).await;
    follower.assert_whole(&api).await;
}

/// R3, X1: stopped between its turn and its start, by a cancel that the first server did not hear.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_waiting_task_whose_cancel_is_cut_short_never_runs() {
    if !heeler_tests::crash::points_are_there() {
        return heeler_tests::skipped("this build has no crash points");
    }
    let point = "journal.committed:5";
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let api = daemon.api().await;
    let [holder, next, last] = scene(&daemon, &api).await;
    api.cancel(heeler_tests::api::cancel(&next))
        .await
        .unwrap_err();
    outlive(&mut daemon, point).await;
    let api = daemon.api().await;
    let task = api.ended(&next).await;
    assert_eq!((task.state(), task.leader), (TaskState::Cancelled, None));
    let proof = task.stop.unwrap().proof.unwrap();
    assert_eq!(proof.method(), ProofMethod::NeverStarted);
    gate.open();
    assert_eq!(api.ended(&holder).await.state(), TaskState::Completed);
    assert_eq!(api.ended(&last).await.state(), TaskState::Completed);
    assert_eq!(runs(&daemon), 0);
    follower.assert_whole(&api).await;
}

/// How far the replacement had come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Not onto the disk: the holder goes on until it is asked for again.
    Nowhere,
    /// Onto the disk: the next server goes on with it unasked.
    Recorded,
}

at_each_point! { a_replacement_cut_short:
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
    before_its_turn_is_there => "queue.turn-come", Got::Recorded;
    before_its_launch => "queue.admitted", Got::Recorded;
    after_its_launch => "spawn.shim-launched:2", Got::Recorded;
    before_the_answer => "spawn.started-recorded:2", Got::Recorded;
}

/// R3, X1, X2, S9
async fn a_replacement_cut_short(point: &str, got: Got) {
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
    assert!(answer.is_err(), "an answer from the dead: {answer:?}");
    outlive(&mut daemon, point).await;

    let api = daemon.api().await;
    if got == Got::Nowhere {
        let task = api.task(&holder.id).await;
        assert_eq!((task.state(), task.stop), (TaskState::Running, None));
    } else {
        let task = api.ended(&holder.id).await;
        assert_eq!(task.end_reason(), EndReason::Replaced, "unasked");
    }
    let first = api.spawn(request.clone()).await.unwrap();
    holder.assert_gone();
    assert_eq!(api.spawn(request).await.unwrap(), first, "and again");
    let task = first.task.unwrap();
    assert_eq!(task.state(), TaskState::Running);
    eventually("its leader says so", || runs(&daemon) > 0).await;
    api.stop(&task.id, CancelMode::Force).await;
    assert_eq!(runs(&daemon), 1, "how often it ran");
    assert_eq!(api.all().await.len(), 2);
    let history = api.history().await;
    let revision = |id: &str, wanted: TaskEventType| {
        let of = |event: &&TaskEvent| event.task.as_ref().is_some_and(|task| task.id == id);
        let mut fitting = history.iter().filter(of);
        let found = fitting.find(|event| event.r#type() == wanted);
        found.map(|event| event.revision).unwrap()
    };
    let gone = revision(&holder.id, TaskEventType::Ended);
    assert!(gone < revision(&task.id, TaskEventType::Started));
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

at_each_point! { a_change_of_a_queue_cut_short:
    after_it_is_recorded => "queue.recorded:2", ();
}

/// R3, X1
async fn a_change_of_a_queue_cut_short(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    api.set_queue("q", Some(4), Some(true)).await.unwrap();
    let waiting = api.start(queued("q", argv(["true"]))).await;
    api.set_queue("q", None, Some(false)).await.unwrap_err();
    outlive(&mut daemon, point).await;
    let api = daemon.api().await;
    assert_eq!(api.ended(&waiting.id).await.state(), TaskState::Completed);
    let queues = api.queues().await;
    assert_eq!((queues[0].slots, queues[0].paused), (4, false));
    follower.assert_whole(&api).await;
}

fn runs(daemon: &Daemon) -> usize {
    let ran = fs::read_to_string(daemon.path("ran")).unwrap_or_default();
    ran.lines().count()
}
