//! Power cuts. By default they may cost the latest journal entries; with `--durability=power`, none.

use heeler_tests::{
    Api, Daemon, Refusal, argv,
    v1::{TaskState, WatchEventsRequest},
};
use tonic::Code;

/// R4, S12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ids_of_tasks_that_the_journal_lost_are_not_reused() {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    daemon.save_journal();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut lost = Vec::new();
    for _ in 0..70 {
        let task = api.start(argv(["true"])).await;
        lost.push(api.ended(&task.id).await.id);
    }
    daemon.terminate();
    daemon.restore_journal();

    daemon.restart().await;
    let api = daemon.api().await;
    assert!(api.all().await.is_empty(), "a lost task is listed");
    for _ in 0..3 {
        let task = api.start(argv(["true"])).await;
        assert!(!lost.contains(&task.id), "a reused id");
        assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    }
}

/// Runs a task, and returns a watch from behind its end.
async fn watch_from_here(api: &Api) -> WatchEventsRequest {
    let task = api.start(argv(["true"])).await;
    api.ended(&task.id).await;
    WatchEventsRequest {
        after_revision: Some(api.revision().await),
        epoch: api.server().await.epoch,
        ..Default::default()
    }
}

/// E2, E4: lost revisions cannot be named, so a new epoch begins.
#[tokio::test]
async fn a_power_cut_starts_a_new_epoch_and_refuses_older_watchers() {
    let mut daemon = Daemon::start().await;
    let seen = watch_from_here(&daemon.api().await).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen.clone()).await.expect("the same epoch");
    daemon.kill9();
    if !daemon.reboot(1) {
        return;
    }
    daemon.restart().await;
    let api = daemon.api().await;
    let refused = api.watch(seen.clone()).await;
    let refusal = Refusal::expect(refused, Code::FailedPrecondition, "EPOCH_MISMATCH");
    let epoch = api.server().await.epoch;
    assert_eq!(refusal.value("epoch"), epoch);
    daemon.logged("watchers have to start over").await;

    // A regular shutdown of the machine ends the server first.
    let seen = watch_from_here(&api).await;
    daemon.terminate();
    daemon.reboot(2);
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen).await.expect("the same epoch");
}

/// E2
#[tokio::test]
async fn with_durability_power_a_power_cut_keeps_the_epoch() {
    let mut daemon = Daemon::builder().arg("--durability=power").start().await;
    let seen = watch_from_here(&daemon.api().await).await;
    daemon.kill9();
    if !daemon.reboot(1) {
        return;
    }
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen).await.expect("the same epoch");
}
