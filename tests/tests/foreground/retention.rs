//! Retention of foreground tasks: delivered ones are kept briefly, and make room in memory for new ones.

use std::{fs, os::unix::net::UnixStream};

use heeler_tests::{Api, DEADLINE, Daemon, Refusal, eventually, shell, v1::*, watch::task_of};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::task::JoinSet;
use tonic::Code;

use super::memory::{foreground_script, in_memory, on_disk};

/// A script that writes almost as much as a task may keep in memory.
const LARGE: &str = "head -c 900000 /dev/zero";

/// Runs a foreground task to its end, which is delivered by an Attach.
async fn run(api: &Api, script: &str) -> String {
    let id = api.start(foreground_script(script)).await.id;
    let ended = api.attach(&id).await.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished);
    id
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn finished_tasks_make_room_in_memory_for_new_ones() {
    let builder = Daemon::builder().arg("--memory-output=4MiB");
    let daemon = builder.start().await;
    let api = daemon.api().await;
    let mut ids = Vec::new();
    // Three times the budget.
    for _ in 0..14 {
        let id = run(&api, LARGE).await;
        assert!(in_memory(&daemon, &id) > 0, "{} before it", ids.len());
        assert_eq!(on_disk(&daemon, &id), 0, "output on disk");
        ids.push(id);
    }
    let last = ids.last().unwrap();
    assert_eq!(api.output(last).await.len(), 900_000);
    let kept = api.ids().await;
    let newest: Vec<&String> = ids.iter().rev().take(kept.len()).collect();
    assert_eq!(kept.iter().collect::<Vec<_>>(), newest, "not the oldest");
    let removed = &ids[..ids.len() - kept.len()];
    assert!(removed.len() > 8, "{}", removed.len());
    for id in removed {
        Refusal::expect(api.inspect(id).await, Code::NotFound, "TASK_NOT_FOUND");
        assert_eq!(in_memory(&daemon, id), 0);
        eventually("the deletion of its file", || {
            !daemon.task_file(id).exists()
        })
        .await;
    }
}

/// F12: the next task finds no room, and begins on disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_whose_end_was_not_delivered_keeps_its_memory() {
    let builder = Daemon::builder().arg("--memory-output=2MiB");
    let daemon = builder.start().await;
    let api = daemon.api().await;
    let before = api.revision().await;
    let undelivered = api.start(foreground_script(LARGE)).await.id;
    let end = tokio::time::Instant::now() + DEADLINE;
    while api.revision().await < before + 3 {
        assert!(tokio::time::Instant::now() < end, "it has not ended");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let next = run(&api, "echo next").await;
    assert!(on_disk(&daemon, &next) > 0);
    assert_eq!(api.output(&next).await, b"next\n");
    assert!(in_memory(&daemon, &undelivered) > 0);
    assert_eq!(api.output(&undelivered).await.len(), 900_000);
    // The output is delivered by no more than a read; the end is delivered now.
    assert_eq!(api.task(&undelivered).await.state(), TaskState::Completed);
    let third = run(&api, "echo third").await;
    assert_eq!(on_disk(&daemon, &third), 0, "output on disk");
    assert_eq!(in_memory(&daemon, &undelivered), 0);
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_latest_thousand_delivered_tasks_are_kept() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = WatchEventsRequest {
        types: vec![TaskEventType::Removed.into()],
        ..Default::default()
    };
    let mut removals = api.watch(request).await.unwrap();
    let background = api.start(shell("true")).await.id;
    api.ended(&background).await;
    let mut first = Vec::new();
    for _ in 0..5 {
        first.push(run(&api, "true").await);
    }
    for _ in 0..100 {
        let mut batch = JoinSet::new();
        for _ in 0..10 {
            let api = api.clone();
            batch.spawn(async move { run(&api, "true").await });
        }
        batch.join_all().await;
    }
    let mut removed = Vec::new();
    while removed.len() < first.len() {
        removed.push(task_of(&removals.event().await).id.clone());
    }
    assert_eq!(removed, first);
    let mut request = ListRequest {
        filter: Some(TaskFilter {
            placement: Placement::Foreground.into(),
            ..Default::default()
        }),
        include_finished: true,
        include_finished_foreground: true,
        page_size: 1000,
        ..Default::default()
    };
    let page = api.list(request.clone()).await.unwrap();
    assert_eq!(page.tasks.len(), 1000);
    if !page.next_page_token.is_empty() {
        request.page_token = page.next_page_token;
        assert_eq!(api.list(request).await.unwrap().tasks, []);
    }
    assert_eq!(api.task(&background).await.state(), TaskState::Completed);
}

/// F12, O11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_that_stops_tasks_leaves_nothing_in_memory_but_kept_output() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let finished = run(&api, "echo kept").await;
    let live = api
        .start(foreground_script("echo up; exec sleep 1000"))
        .await;
    api.attach(&live.id).await.until("up\n").await;
    let directory = daemon.memory_dir();
    daemon.heeler(["shutdown", "--stop-tasks"]).await.ok();
    daemon.ended();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.lines(&finished).await, ["kept"], "after a restart");
    assert_eq!(api.lines(&live.id).await, ["up"], "after a restart");
    api.remove([&finished, &live.id]).await.unwrap();
    let background = api.start(shell("exec sleep 1000")).await;
    daemon.heeler(["shutdown", "--stop-tasks"]).await.ok();
    daemon.ended();
    assert!(!directory.exists(), "left in memory");
    daemon.restart().await;
    let stopped = daemon.api().await.task(&background.id).await;
    assert_eq!(stopped.end_reason(), EndReason::ServerShutdown);
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn any_server_of_the_user_removes_the_memory_of_a_deleted_state_directory() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = run(&api, "echo kept").await;
    let memory = daemon.memory_dir();
    assert!(memory.join(&task).exists());
    daemon.kill9();
    start_and_shut_down_another(&daemon).await;
    assert!(memory.join(&task).exists(), "its state directory is there");
    fs::remove_dir_all(daemon.state_dir()).unwrap();
    start_and_shut_down_another(&daemon).await;
    assert!(!memory.exists());
}

/// Starts a server with another state directory and the same memory, and shuts it down.
async fn start_and_shut_down_another(daemon: &Daemon) {
    let mut serve = daemon.command();
    serve
        .args(["serve", "--containment=subreaper", "--state-dir"])
        .arg(daemon.path("other-state"))
        .arg("--memory-dir")
        .arg(daemon.memory_dir().parent().unwrap());
    let mut server = serve.spawn().unwrap();
    let is_listening = || UnixStream::connect(daemon.socket()).is_ok();
    eventually("a server", is_listening).await;
    kill(Pid::from_raw(server.id() as i32), Signal::SIGTERM).unwrap();
    assert!(server.wait().unwrap().success());
}
