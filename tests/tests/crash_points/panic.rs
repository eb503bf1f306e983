//! Panics: the actor of a task panics at each point, and the server goes on. The task is taken back from
//! the journal, requests are answered, and nothing happens twice.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, argv, exclusive,
    outcome::{exit_code, proof_in},
    v1::*,
    watch::{ONE_RUN, types},
};
use tonic::Code;

use crate::{at_each_point, runs};

const TAKEN_BACK: &str = "the task's actor failed; taking the task back";

/// Starts a daemon in which an actor panics at the point.
async fn shaken(point: &str) -> Daemon {
    let mut daemon = Daemon::builder().containment("subreaper").prepare();
    daemon.panic_at(point);
    daemon.restart().await;
    daemon
}

at_each_point! { a_spawn_shaken:
    after_the_intent => "spawn.intent-recorded", ();
    after_the_shim_is_launched => "spawn.shim-launched", ();
    after_the_start_is_seen => "spawn.start-seen", ();
    at_the_end => "end.seen", ();
    after_the_end => "end.recorded", ();
}

/// R3, S9
async fn a_spawn_shaken(point: &str, (): ()) {
    let daemon = shaken(point).await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let (ran, gate_path) = (daemon.file("ran"), daemon.file("gate"));
    let script = format!("pids {ran} pid leader print out gate {gate_path} exit 7");
    let id = api
        .start(daemon.script(&script).with_request_id("once"))
        .await
        .id;
    gate.open();
    let task = api.ended(&id).await;
    assert_eq!(exit_code(&task), 7);
    assert_eq!(runs(&daemon), 1, "number of runs");
    assert_eq!(api.lines(&id).await, ["out"]);
    assert_eq!(api.event_types(&id).await, ONE_RUN);
    daemon.logged(TAKEN_BACK).await;
    daemon.no_processes().await;
}

/// R3, S9: nothing was recorded, and the answer says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_spawn_that_is_not_recorded_is_refused_truthfully() {
    if !heeler_tests::crash::points_are_built_in() {
        return heeler_tests::skipped("this build has no crash points");
    }
    let daemon = shaken("spawn.before-intent").await;
    let api = daemon.api().await;
    let refusal = Refusal::expect(
        api.spawn(argv(["true"])).await,
        Code::Unavailable,
        "NOT_SERVING",
    );
    assert!(!refusal.message.contains("shutting down"), "{refusal:?}");
    assert!(api.all().await.is_empty());
    let id = api.start(argv(["true"])).await.id;
    assert_eq!(api.ended(&id).await.state(), TaskState::Completed);
}

at_each_point! { a_cancel_shaken:
    before_the_stop => "cancel.before-intent", ();
    before_the_kill => "cancel.before-kill", ();
    after_the_kill => "cancel.kill-ordered", ();
    when_the_end_is_seen => "end.seen", ();
    when_the_end_is_recorded => "end.recorded", ();
}

/// R3, C13
async fn a_cancel_shaken(point: &str, (): ()) {
    let daemon = shaken(point).await;
    let api = daemon.api().await;
    let script = "ignore TERM fork [ setsid pid hidden forever ] pid ready forever";
    let mut fixture = daemon.run(&api, script).await;
    fixture.processes(&["ready", "hidden"]).await;
    let result = api.kill(&fixture.id).await;
    proof_in(&result);
    fixture.assert_gone();
    assert_eq!(result.task.unwrap().state(), TaskState::Cancelled);
    use TaskEventType::{Created, Ended, LeaderExited, Started, Stopping};
    let mut history = types(&api.history_of(&fixture.id).await);
    history.retain(|kind| *kind != LeaderExited);
    assert_eq!(history, [Created, Started, Stopping, Ended]);
    daemon.logged(TAKEN_BACK).await;
    daemon.no_processes().await;
}

at_each_point! { an_admission_shaken:
    before_its_admission => "queue.before-admitted", ();
    after_its_admission => "queue.admitted", ();
    after_its_launch => "spawn.shim-launched:2", ();
}

/// R3, X2
async fn an_admission_shaken(point: &str, (): ()) {
    let daemon = shaken(point).await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let mode = ExclusiveMode::Queue;
    let holder = daemon.script(&format!("gate {} exit 0", daemon.file("gate")));
    let next = daemon.script(&format!("pids {} pid leader exit 7", daemon.file("ran")));
    let holder = api.start(exclusive("k", mode, holder)).await.id;
    let next = api.start(exclusive("k", mode, next)).await.id;
    gate.open();
    assert_eq!(exit_code(&api.ended(&next).await), 7);
    assert_eq!(runs(&daemon), 1, "number of runs");
    assert_eq!(exit_code(&api.ended(&holder).await), 0);
    use TaskEventType::{Admitted, Created, Ended, Started};
    assert_eq!(
        api.event_types(&next).await,
        [Created, Admitted, Started, Ended]
    );
    daemon.logged(TAKEN_BACK).await;
    daemon.no_processes().await;
}
