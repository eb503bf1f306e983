//! Spawn, from before its intent to just before its answer.

use std::fs;

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _,
    v1::{outcome::Result as Ended, *},
    watch::types,
};

use crate::{at_each_point, doomed, outlive};

/// What has become of a start that was cut short.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It runs: at the first attempt, or when it is asked for again.
    Runs,
    /// It is over, and nothing ever ran.
    Undone,
    /// One of the two: its shim was about to begin.
    Either,
}

at_each_point! { a_spawn_cut_short:
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
async fn a_spawn_cut_short(point: &str, fate: Fate) {
    let (mut daemon, follower) = doomed(point).await;
    let gate = daemon.gate("gate");
    let (ran, gate_path) = (daemon.file("ran"), daemon.file("gate"));
    let script = format!("pids {ran} pid leader print out gate {gate_path} exit 7");
    let request = daemon.script(&script).with_request_id("once");
    let answer = daemon.api().await.spawn(request.clone()).await;
    assert!(answer.is_err(), "an answer from the dead: {answer:?}");
    outlive(&mut daemon, point).await;

    let api = daemon.api().await;
    let first = asked_again(&api, &request).await;
    assert_eq!(asked_again(&api, &request).await, first, "and again");
    let tasks = api.all().await;
    let ids: Vec<&str> = tasks.iter().map(|task| &*task.id).collect();
    let (started, id) = match &first {
        Ok(answer) => (true, answer.task.as_ref().unwrap().id.clone()),
        Err(id) => (false, id.clone()),
    };
    assert_eq!(ids, [&id], "one task");
    assert!(started || fate != Fate::Runs, "not started");
    assert!(!started || fate != Fate::Undone, "started after all");
    gate.open();
    let task = api.ended(&id).await;
    assert_eq!(runs(&daemon), usize::from(started), "how often it ran");
    let (history, result) = (api.history_of(&id).await, task.outcome.unwrap().result);
    use TaskEventType::{Created, Ended as End, Started};
    if started {
        assert_eq!(types(&history), [Created, Started, End]);
        assert_eq!(result, Some(Ended::ExitCode(7)));
        assert_eq!(api.lines(&id).await, ["out"]);
    } else {
        assert_eq!(types(&history), [Created, End]);
        assert!(matches!(result, Some(Ended::SpawnError(_))), "{result:?}");
    }
    follower.assert_whole(&api).await;
    daemon.no_processes().await;
}

/// R3: a server that has seen to it that nothing will be started dies before it can say so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_start_that_is_undone_by_two_servers_never_ran() {
    if !heeler_tests::crash::points_are_there() {
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
    outlive(&mut daemon, "journal.before-commit:1").await;

    let api = daemon.api().await;
    let id = asked_again(&api, &request).await.unwrap_err();
    let task = api.ended(&id).await;
    let result = task.outcome.unwrap().result;
    assert!(matches!(result, Some(Ended::SpawnError(_))), "{result:?}");
    assert_eq!(runs(&daemon), 0);
    follower.assert_whole(&api).await;
}

/// The answer, or the id of the task that could not be started.
async fn asked_again(api: &Api, request: &SpawnRequest) -> Result<SpawnResponse, String> {
    api.spawn(request.clone()).await.map_err(|status| {
        let refusal = Refusal::of(&status);
        assert_eq!(refusal.reason, "SPAWN_FAILED", "{refusal:?}");
        refusal.value("task_id").to_owned()
    })
}

fn runs(daemon: &Daemon) -> usize {
    let ran = fs::read_to_string(daemon.path("ran")).unwrap_or_default();
    ran.lines().count()
}
