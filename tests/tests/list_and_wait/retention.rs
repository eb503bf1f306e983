//! Retention: finished tasks, output and events beyond the limits are pruned.

use heeler_tests::{
    Api, DEADLINE, Daemon, Refusal, SpawnRequestExt as _, Watch, eventually, history::after, shell,
    v1::*, watch::task_of,
};
use tonic::Code;

/// A stream of REMOVED events alone, which delivers no end.
async fn removals(api: &Api) -> Watch {
    let request = WatchEventsRequest {
        after_revision: Some(0),
        types: vec![TaskEventType::Removed.into()],
        ..Default::default()
    };
    api.watch(request).await.expect("a stream")
}

async fn removed(watch: &mut Watch, count: usize) -> Vec<String> {
    let mut ids = Vec::new();
    while ids.len() < count {
        ids.push(task_of(&watch.event().await).id.clone());
    }
    ids
}

/// Runs a task to its end, which is seen by the revision alone and not delivered.
async fn end_undelivered(api: &Api, script: &str) -> String {
    let before = api.revision().await;
    let id = api.start(shell(script)).await.id;
    let end = tokio::time::Instant::now() + DEADLINE;
    while api.revision().await < before + 3 {
        assert!(tokio::time::Instant::now() < end, "{id} has not ended");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    id
}

async fn end_delivered(api: &Api, script: &str) -> String {
    let id = api.start(shell(script)).await.id;
    api.ended(&id).await;
    id
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_oldest_finished_tasks_are_pruned_first_and_undelivered_ends_last() {
    let builder = Daemon::builder().arg("--keep-finished=4");
    let daemon = builder.start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let live = api.start(shell("sleep 1000")).await.id;
    let mut undelivered = Vec::new();
    for _ in 0..2 {
        undelivered.push(end_undelivered(&api, "echo undelivered").await);
    }
    let mut delivered = Vec::new();
    for _ in 0..4 {
        delivered.push(end_delivered(&api, "echo delivered").await);
    }
    assert_eq!(removed(&mut watch, 2).await, delivered[..2]);
    let kept = [
        &live,
        &delivered[3],
        &delivered[2],
        &undelivered[1],
        &undelivered[0],
    ];
    assert_eq!(api.ids().await.iter().collect::<Vec<_>>(), kept);
    eventually("the output of pruned tasks to be deleted", || {
        delivered[..2]
            .iter()
            .all(|id| !daemon.task_file(id).exists())
    })
    .await;
    for id in &delivered[..2] {
        Refusal::expect(api.inspect(id).await, Code::NotFound, "TASK_NOT_FOUND");
    }
    assert_eq!(api.output(&undelivered[0]).await, b"undelivered\n");
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn undelivered_ends_are_pruned_when_nothing_else_is_left() {
    let daemon = Daemon::builder().arg("--keep-finished=1").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let mut undelivered = Vec::new();
    for _ in 0..3 {
        // A removal in between is a revision too.
        undelivered.push(api.start(shell("true")).await.id);
    }
    daemon.no_processes().await;
    let mut gone = removed(&mut watch, 2).await;
    let left = api.ids().await;
    assert_eq!(left.len(), 1, "{left:?}");
    gone.extend(left);
    gone.sort();
    undelivered.sort();
    assert_eq!(gone, undelivered);
}

/// L7, O18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_is_pruned_beyond_its_size_limit() {
    let daemon = Daemon::builder().arg("--max-output=1MiB").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(end_delivered(&api, "head -c 600000 /dev/zero").await);
    }
    assert_eq!(removed(&mut watch, 2).await, tasks[..2]);
    assert_eq!(api.ids().await, tasks[2..]);
    assert_eq!(api.output(&tasks[2]).await.len(), 600_000);
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn only_delivered_ends_are_pruned_by_age() {
    let daemon = Daemon::builder().arg("--keep-for=1s").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let undelivered = end_undelivered(&api, "true").await;
    let delivered = end_delivered(&api, "true").await;
    assert_eq!(removed(&mut watch, 1).await, [delivered]);
    assert_eq!(api.task(&undelivered).await.state(), TaskState::Completed);
    assert_eq!(
        removed(&mut watch, 1).await,
        [undelivered],
        "delivered by now"
    );
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn delivery_is_remembered_across_a_restart() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let undelivered = end_undelivered(&api, "true").await;
    let delivered = end_delivered(&api, "true").await;
    daemon.terminate();
    daemon.add_arg("--keep-finished=1");
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(removed(&mut removals(&api).await, 1).await, [delivered]);
    assert_eq!(api.ids().await, [undelivered]);
}

/// L7, E2, E4, S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_beyond_the_limit_are_pruned_and_nothing_else() {
    let mut daemon = Daemon::builder().arg("--keep-events=30").start().await;
    let api = daemon.api().await;
    let mut follower = api.watch_after(0).await;
    let request = shell("echo first; sleep 1000").with_request_id("first");
    let first = api.spawn(request.clone()).await.expect("a start");
    let mut finished = Vec::new();
    for _ in 0..40 {
        finished.push(end_delivered(&api, "echo x").await);
    }
    let newest = api.revision().await;
    let followed = follower.up_to(newest).await;
    let revisions: Vec<u64> = followed.iter().map(|event| event.revision).collect();
    assert_eq!(
        revisions,
        (1..=newest).collect::<Vec<_>>(),
        "a gap in the stream"
    );

    for _ in 0..2 {
        let api = daemon.api().await;
        let oldest = api.oldest_kept(newest - 29).await;
        assert_eq!(oldest, newest - 29);
        let kept = api.watch_after(oldest - 1).await.up_to(newest).await;
        assert_eq!(kept.len(), 30);
        assert_eq!(api.ids().await.len(), 41);
        let again = api.spawn(request.clone()).await.expect("the same answer");
        assert_eq!(again.task, first.task);
        for id in &finished {
            assert_eq!(api.task(id).await.state(), TaskState::Completed);
        }
        daemon.kill9();
        daemon.restart().await;
    }
}

/// L7, R1, E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_during_pruning_loses_nothing_else() {
    let mut daemon = Daemon::builder()
        .arg("--keep-finished=8")
        .arg("--keep-events=40")
        .start()
        .await;
    let live = daemon.api().await.start(shell("sleep 1000")).await;
    let mut cursor = daemon.api().await.revision().await;
    for round in 0..6 {
        let api = daemon.api().await;
        let mut watch = api.watch_after(cursor).await;
        let mut events = Vec::new();
        for _ in 0..8 {
            // Not by Wait: once the end is delivered to the watcher, the task may be pruned at any time.
            let id = api.start(shell("true")).await.id;
            events.extend(watch.until_of(&id, TaskEventType::Ended).await);
        }
        // Crash before the first removal in one round, after it in the next.
        if round % 2 == 1 {
            let removed = |event: &TaskEvent| event.r#type() == TaskEventType::Removed;
            events.extend(watch.until(removed).await);
        }
        let revisions: Vec<u64> = events.iter().map(|event| event.revision).collect();
        let newest = *revisions.last().unwrap();
        assert_eq!(revisions, (cursor + 1..=newest).collect::<Vec<_>>());
        cursor = newest;
        daemon.kill9();
        daemon.restart().await;
    }
    let api = daemon.api().await;
    assert_eq!(api.task(&live.id).await.state(), TaskState::Running);
    let end = tokio::time::Instant::now() + DEADLINE;
    while api.ids().await.len() > 9 {
        assert!(tokio::time::Instant::now() < end, "too many tasks are kept");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    api.watch(after(cursor))
        .await
        .expect("a revision that is still kept");
}
