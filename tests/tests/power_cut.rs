//! What a power cut may cost where facts are only to survive the death of processes: the latest ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use heeler_tests::{Daemon, argv, v1::TaskState};

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
