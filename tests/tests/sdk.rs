//! The Rust client: handles, typed errors, and a watch that outlives the server.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use heeler_client::{
    CancelOptions, Client, Error, Spawn, StreamExt, WatchItem, WatchOptions,
    v1::{CancelOutcome, TaskEvent, TaskEventType, TaskState, outcome::Result as Ended},
};
use heeler_tests::{Daemon, within};

async fn client(daemon: &Daemon) -> Client {
    Client::connect(daemon.address().parse().unwrap())
        .await
        .unwrap()
}

/// S1, L4, O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handle_spawns_waits_reads_and_removes() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let task = client
        .spawn(Spawn::shell("echo out; echo err >&2; exit 4").session("s"))
        .await
        .unwrap();
    let ended = within("its end", task.wait()).await.unwrap();
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(4)));
    let mut output = task.output();
    let mut all = Vec::new();
    while let Some(chunk) = within("its output", output.next()).await {
        all.extend_from_slice(&chunk.unwrap().data);
    }
    let mut lines: Vec<&str> = std::str::from_utf8(&all).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    task.remove().await.unwrap();
    let error = task.snapshot().await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
}

/// C1, C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handle_cancels_and_dropping_it_does_nothing() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    let id = task.id().to_owned();
    drop(task);
    let task = client.task(&id);
    assert_eq!(task.snapshot().await.unwrap().state(), TaskState::Running);
    assert_eq!(
        task.wait_timeout(Duration::from_millis(50)).await.unwrap(),
        None
    );
    let result = task
        .cancel(CancelOptions::graceful().reason("r"))
        .await
        .unwrap();
    assert_eq!(result.task.as_ref().unwrap().state(), TaskState::Cancelled);
    assert_eq!(result.proof.unwrap().survivors, []);
    let again = task.cancel(CancelOptions::graceful()).await.unwrap();
    assert_eq!(again.outcome(), CancelOutcome::AlreadyFinished);
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_watch_goes_on_across_crashes_without_loss_or_repeats() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let mut watch = client.watch(WatchOptions::after(0));
    let mut seen: Vec<TaskEvent> = Vec::new();
    let mut last = String::new();
    for _ in 0..4 {
        for _ in 0..3 {
            last = client
                .spawn(Spawn::argv(["true"]))
                .await
                .unwrap()
                .id()
                .to_owned();
        }
        // Some of them are read, some are left for the time after the crash.
        for _ in 0..4 {
            seen.push(next(&mut watch).await);
        }
        daemon.kill9();
        daemon.restart().await;
    }
    let is_last = |event: &TaskEvent| {
        event.r#type() == TaskEventType::Ended && event.task.as_ref().unwrap().id == last
    };
    while !seen.last().is_some_and(is_last) {
        seen.push(next(&mut watch).await);
    }
    let api = daemon.api().await;
    for task in api.all().await {
        api.ended(&task.id).await;
    }
    let history = api.history().await;
    while seen.len() < history.len() {
        seen.push(next(&mut watch).await);
    }
    assert_eq!(seen, history);
}

async fn next(watch: &mut heeler_client::Watch) -> TaskEvent {
    loop {
        match within("an event", watch.next()).await.unwrap().unwrap() {
            WatchItem::Event(event) => return event,
            WatchItem::Bookmark(_) => {}
            WatchItem::Initial(task) => panic!("no initial state was asked for: {task:?}"),
        }
    }
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_that_finds_the_daemon_restarting_is_made_again() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await.retry_for(heeler_tests::DEADLINE);
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    daemon.kill9();
    let call = tokio::spawn(async move { task.snapshot().await });
    daemon.restart().await;
    let found = within("an answer", call).await.unwrap().unwrap();
    assert_eq!(found.state(), TaskState::Running);
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn no_daemon_is_told_as_such() {
    let daemon = Daemon::builder().prepare();
    let error = Client::connect(daemon.address().parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotRunning { .. }), "{error:?}");
}
