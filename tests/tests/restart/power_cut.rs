//! What a power cut may cost where facts are only to survive the death of processes: the latest ones.

use std::fs;

use heeler_tests::{
    Api, Daemon, Refusal, argv,
    v1::{TaskState, WatchEventsRequest},
};
use tonic::Code;

/// R4: the journal has forgotten tasks whose files are there; their numbers are not given out again.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn tasks_start_although_the_journal_has_lost_the_latest_ones() {
    let mut daemon = Daemon::start().await;
    daemon.terminate();
    let (journal, earlier) = (daemon.path("state/journal.db"), daemon.path("earlier.db"));
    fs::copy(&journal, &earlier).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut lost = Vec::new();
    for _ in 0..70 {
        let task = api.start(argv(["true"])).await;
        lost.push(api.ended(&task.id).await.id);
    }
    daemon.terminate();
    fs::copy(&earlier, &journal).unwrap();

    daemon.restart().await;
    let api = daemon.api().await;
    assert!(api.all().await.is_empty(), "what is lost is lost");
    for _ in 0..3 {
        let task = api.start(argv(["true"])).await;
        assert!(!lost.contains(&task.id), "an id that was used");
        assert_eq!(api.ended(&task.id).await.state(), TaskState::Completed);
    }
}

/// One task more; the newest revision, and what it belongs to.
async fn place(api: &Api) -> WatchEventsRequest {
    let task = api.start(argv(["true"])).await;
    api.ended(&task.id).await;
    WatchEventsRequest {
        after_revision: Some(api.revision().await),
        epoch: api.server().await.epoch,
        ..Default::default()
    }
}

/// E2, E4: nobody can say which revisions were lost, so a watcher is told that it has to begin anew.
#[tokio::test]
async fn a_watcher_is_told_that_a_power_cut_may_have_taken_what_it_has_seen() {
    let mut daemon = Daemon::start().await;
    let seen = place(&daemon.api().await).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen.clone()).await.expect("the same boot");
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
    daemon.logged("watchers of before have to begin anew").await;

    // A machine that is shut down lets its servers end.
    let seen = place(&api).await;
    daemon.terminate();
    daemon.reboot(2);
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen).await.expect("nothing was lost");
}

/// E2: where every fact is on the disk before it is told, there is nothing to be told.
#[tokio::test]
async fn a_power_cut_takes_nothing_that_was_seen_where_facts_outlive_it() {
    let mut daemon = Daemon::builder().arg("--durability=power").start().await;
    let seen = place(&daemon.api().await).await;
    daemon.kill9();
    if !daemon.reboot(1) {
        return;
    }
    daemon.restart().await;
    let api = daemon.api().await;
    api.watch(seen).await.expect("nothing was lost");
}
