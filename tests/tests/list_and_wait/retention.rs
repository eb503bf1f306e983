//! What is kept of the past, and what is not.

use std::path::PathBuf;

use heeler_tests::{
    Api, DEADLINE, Daemon, Refusal, SpawnRequestExt as _, Watch, eventually, shell, v1::*,
    watch::task_of,
};
use tonic::Code;

/// A stream that tells of removals, and so of no end.
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

/// A task that has ended, as the revisions tell: nobody has seen its end.
async fn end_unseen(api: &Api, script: &str) -> String {
    let before = api.revision().await;
    let id = api.start(shell(script)).await.id;
    let end = tokio::time::Instant::now() + DEADLINE;
    while api.revision().await < before + 3 {
        assert!(tokio::time::Instant::now() < end, "{id} has not ended");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    id
}

async fn end_seen(api: &Api, script: &str) -> String {
    let id = api.start(shell(script)).await.id;
    api.ended(&id).await;
    id
}

fn file_of(daemon: &Daemon, id: &str) -> PathBuf {
    let last = &id[id.len() - 1..];
    daemon.state_dir().join("tasks").join(last).join(id)
}

async fn ids(api: &Api) -> Vec<String> {
    api.all().await.into_iter().map(|task| task.id).collect()
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_oldest_finished_go_first_and_those_that_nobody_has_seen_go_last() {
    let builder = Daemon::builder().arg("--keep-finished=4");
    let daemon = builder.start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let live = api.start(shell("sleep 1000")).await.id;
    let mut unseen = Vec::new();
    for _ in 0..2 {
        unseen.push(end_unseen(&api, "echo unseen").await);
    }
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.push(end_seen(&api, "echo seen").await);
    }
    assert_eq!(removed(&mut watch, 2).await, seen[..2]);
    let kept = [&live, &seen[3], &seen[2], &unseen[1], &unseen[0]];
    assert_eq!(ids(&api).await.iter().collect::<Vec<_>>(), kept);
    eventually("their output is gone", || {
        seen[..2].iter().all(|id| !file_of(&daemon, id).exists())
    })
    .await;
    for id in &seen[..2] {
        Refusal::expect(api.inspect(id).await, Code::NotFound, "TASK_NOT_FOUND");
    }
    assert_eq!(api.output(&unseen[0]).await, b"unseen\n");
}

/// L7: where there are only such, they go as well, the oldest first.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn ends_that_nobody_has_seen_do_not_fill_the_disk_either() {
    let daemon = Daemon::builder().arg("--keep-finished=1").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let mut unseen = Vec::new();
    for _ in 0..3 {
        // A removal may come in between, and counts as a revision too.
        unseen.push(api.start(shell("true")).await.id);
    }
    daemon.no_processes().await;
    let mut gone = removed(&mut watch, 2).await;
    let left = ids(&api).await;
    assert_eq!(left.len(), 1, "{left:?}");
    gone.extend(left);
    gone.sort();
    unseen.sort();
    assert_eq!(gone, unseen);
}

/// L7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_is_kept_up_to_a_size() {
    let daemon = Daemon::builder().arg("--keep-output=100KiB").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let mut tasks = Vec::new();
    for _ in 0..3 {
        tasks.push(end_seen(&api, "head -c 65536 /dev/zero").await);
    }
    assert_eq!(removed(&mut watch, 2).await, tasks[..2]);
    assert_eq!(ids(&api).await, tasks[2..]);
    assert_eq!(api.output(&tasks[2]).await.len(), 65536);
}

/// L7: by age go only those that somebody has seen.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_seen_is_kept_for_a_time() {
    let daemon = Daemon::builder().arg("--keep-for=1s").start().await;
    let api = daemon.api().await;
    let mut watch = removals(&api).await;
    let unseen = end_unseen(&api, "true").await;
    let seen = end_seen(&api, "true").await;
    assert_eq!(removed(&mut watch, 1).await, [seen]);
    assert_eq!(api.task(&unseen).await.state(), TaskState::Completed);
    assert_eq!(removed(&mut watch, 1).await, [unseen], "now it was seen");
}

/// L7: what was seen is known to the next server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_was_seen_is_remembered() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let unseen = end_unseen(&api, "true").await;
    let seen = end_seen(&api, "true").await;
    daemon.terminate();
    daemon.add_arg("--keep-finished=1");
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(removed(&mut removals(&api).await, 1).await, [seen]);
    assert_eq!(ids(&api).await, [unseen]);
}

/// E2, E4, S9: old events go, and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn events_beyond_the_limit_are_dropped_and_everything_else_stays() {
    let mut daemon = Daemon::builder().arg("--keep-events=30").start().await;
    let api = daemon.api().await;
    let mut follower = api.watch_after(0).await;
    let request = shell("echo first; sleep 1000").with_request_id("first");
    let first = api.spawn(request.clone()).await.expect("a start");
    let mut finished = Vec::new();
    for _ in 0..40 {
        finished.push(end_seen(&api, "echo x").await);
    }
    let newest = api.revision().await;
    let followed = follower.up_to(newest).await;
    let revisions: Vec<u64> = followed.iter().map(|event| event.revision).collect();
    assert_eq!(revisions, (1..=newest).collect::<Vec<_>>(), "E2");

    for _ in 0..2 {
        let api = daemon.api().await;
        let oldest = out_of_range(&api, newest - 29).await;
        assert_eq!(oldest, newest - 29);
        let kept = api.watch_after(oldest - 1).await.up_to(newest).await;
        assert_eq!(kept.len(), 30);
        assert_eq!(ids(&api).await.len(), 41);
        let again = api.spawn(request.clone()).await.expect("the same answer");
        assert_eq!(again.task, first.task);
        assert_eq!(again.revision, first.revision);
        for id in &finished {
            assert_eq!(api.task(id).await.state(), TaskState::Completed);
        }
        daemon.kill9();
        daemon.restart().await;
    }
}

/// What a watcher from the beginning is told, once the oldest event is this one or later.
async fn out_of_range(api: &Api, oldest: u64) -> u64 {
    let end = tokio::time::Instant::now() + DEADLINE;
    loop {
        let request = WatchEventsRequest {
            after_revision: Some(0),
            ..Default::default()
        };
        if let Err(status) = api.watch(request).await {
            let refusal = Refusal::of(&status);
            assert_eq!(refusal.code, Code::OutOfRange, "{refusal:?}");
            let told = refusal.value("oldest").parse().unwrap();
            if told >= oldest {
                return told;
            }
        }
        assert!(tokio::time::Instant::now() < end, "events are not dropped");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// R1, E2: the server may die at any moment of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn kill_9_while_the_past_is_shortened_harms_nothing() {
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
            // Not by Wait: once the watcher has seen the end, the task may go at any time.
            let id = api.start(shell("true")).await.id;
            events.extend(watch.until_of(&id, TaskEventType::Ended).await);
        }
        // Once before the keeper has come to anything, once when it has begun.
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
    while ids(&api).await.len() > 9 {
        assert!(tokio::time::Instant::now() < end, "too many are kept");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let request = WatchEventsRequest {
        after_revision: Some(cursor),
        ..Default::default()
    };
    api.watch(request).await.expect("its place is still known");
}
