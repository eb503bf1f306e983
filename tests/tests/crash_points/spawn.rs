//! Spawn: from before its record to just before its answer.

use heeler_tests::{
    Api, Refusal, SpawnRequestExt as _,
    outcome::{exit_code, outcome},
    v1::{outcome::Result as Ended, *},
    watch::ONE_RUN,
};

use crate::{at_each_point, doomed, restart_after, runs};

/// The result of an interrupted start.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The task runs, from the first request or from the repeated one.
    Runs,
    /// The task ended without ever running.
    Undone,
    /// Either of the two: the shim was about to start it.
    Either,
}

at_each_point! { a_spawn_interrupted:
    before_the_intent => "spawn.before-intent", Fate::Runs;
    before_the_intent_is_committed => "journal.before-commit:1", Fate::Runs;
    after_the_intent_is_committed => "journal.committed:1", Fate::Undone;
    after_the_intent => "spawn.intent-recorded", Fate::Undone;
    after_the_shim_is_launched => "spawn.shim-launched", Fate::Either;
    after_the_start_is_seen => "spawn.start-seen", Fate::Runs;
    before_the_start_is_committed => "journal.before-commit:2", Fate::Runs;
    after_the_start_is_committed => "journal.committed:2", Fate::Runs;
    before_the_answer => "spawn.started-recorded", Fate::Runs;
}

/// R3, S9, E2
async fn a_spawn_interrupted(point: &str, fate: Fate) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let (ran, gate_path) = (daemon.file("ran"), daemon.file("gate"));
    let script = format!("pids {ran} pid leader print out gate {gate_path} exit 7");
    let request = daemon.script(&script).with_request_id("once");
    let answer = daemon.api().await.spawn(request.clone()).await;
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let first = repeat(&api, &request).await;
    assert_eq!(repeat(&api, &request).await, first, "the repeated request");
    let tasks = api.all().await;
    let ids: Vec<&str> = tasks.iter().map(|task| &*task.id).collect();
    let (started, id) = match &first {
        Ok(answer) => (true, answer.task.as_ref().unwrap().id.clone()),
        Err(id) => (false, id.clone()),
    };
    assert_eq!(ids, [&id], "more than one task");
    assert!(started || fate != Fate::Runs, "not started");
    assert!(!started || fate != Fate::Undone, "started");
    gate.open();
    let task = api.ended(&id).await;
    assert_eq!(runs(&daemon), usize::from(started), "number of runs");
    let history = api.event_types(&id).await;
    use TaskEventType::{Created, Ended as End};
    if started {
        assert_eq!(history, ONE_RUN);
        assert_eq!(exit_code(&task), 7);
        assert_eq!(api.lines(&id).await, ["out"]);
    } else {
        assert_eq!(history, [Created, End]);
        assert!(matches!(outcome(&task), Ended::SpawnError(_)), "{task:?}");
    }
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

/// R3: a server that has prevented a start dies before it records that.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_undone_by_two_servers_never_runs() {
    if !heeler_tests::crash::points_are_built_in() {
        return heeler_tests::skipped("this build has no crash points");
    }
    let (mut daemon, follower) = doomed("spawn.intent-recorded").await;
    let request = daemon
        .script(&format!("pids {} pid leader exit 7", daemon.file("ran")))
        .with_request_id("once");
    daemon.api().await.spawn(request.clone()).await.unwrap_err();
    daemon.died();
    daemon.die_at("journal.before-commit:1");
    daemon.launch();
    restart_after(&mut daemon, "journal.before-commit:1").await;

    let api = daemon.api().await;
    let id = repeat(&api, &request).await.unwrap_err();
    let task = api.ended(&id).await;
    assert!(matches!(outcome(&task), Ended::SpawnError(_)), "{task:?}");
    assert_eq!(runs(&daemon), 0);
    follower.assert_whole(&api).await;
}

/// Repeats the request; returns the answer, or the id of a task whose start failed.
async fn repeat(api: &Api, request: &SpawnRequest) -> Result<SpawnResponse, String> {
    api.spawn(request.clone()).await.map_err(|status| {
        let refusal = Refusal::of(&status);
        assert_eq!(refusal.reason, "SPAWN_FAILED", "{refusal:?}");
        refusal.value("task_id").to_owned()
    })
}
