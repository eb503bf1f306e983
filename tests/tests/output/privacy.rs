//! Output stays where it belongs: that of a foreground task in memory, that of a removed task nowhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use heeler_tests::{Api, Daemon, SpawnRequestExt as _, foreground, output, shell, v1::*};

/// The output of the tasks. Their commands have it in two halves, so only the output contains it whole.
const WRITTEN: &str = "hush-7b1f0c9d2e";

fn script() -> String {
    let (first, second) = WRITTEN.split_at(6);
    format!("printf '%s%s\\n' {first} {second}; printf '%s%s\\n' {first} {second} >&2; exit 4")
}

fn foreground_task() -> SpawnRequest {
    foreground().with_command_of(shell(script()))
}

/// Every file below a directory that contains what the tasks have written.
fn files_with_output(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() && contains_output(&fs::read(&path).unwrap()) {
                found.push(path);
            }
        }
    }
    found
}

fn contains_output(bytes: &[u8]) -> bool {
    let mut windows = bytes.windows(WRITTEN.len());
    windows.any(|window| window == WRITTEN.as_bytes())
}

/// The tail of the task's ENDED event, as a watcher from revision 0 gets it.
async fn delivered_tail(api: &Api, id: &str) -> Option<OutputTail> {
    let mut history = api.history_of(id).await;
    history.retain(|event| event.r#type() == TaskEventType::Ended);
    assert_eq!(history.len(), 1);
    history.remove(0).output_tail
}

fn text(tail: &OutputTail) -> String {
    let bytes: Vec<u8> = tail
        .chunks
        .iter()
        .flat_map(|chunk| output::raw(chunk).to_vec())
        .collect();
    String::from_utf8(bytes).unwrap()
}

/// Runs a foreground task to its end, with an attached client and a watcher.
async fn run_in_the_foreground(api: &Api) -> String {
    let mut watch = api.watch_after(api.revision().await).await;
    let task = api.start(foreground_task()).await;
    let mut attached = api.attach(&task.id).await;
    assert_eq!(attached.ended().await.reason(), AttachEndReason::Finished);
    let events = watch.until_of(&task.id, TaskEventType::Ended).await;
    let tail = events.last().unwrap().output_tail.as_ref().unwrap();
    assert_eq!(text(tail).matches(WRITTEN).count(), 2, "E5");
    task.id
}

/// F12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_task_leaves_no_byte_of_output_on_disk() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = run_in_the_foreground(&api).await;
    let root = daemon.path("");
    assert_eq!(files_with_output(&root), [] as [PathBuf; 0]);
    assert!(!contains_output(daemon.log().as_bytes()));

    daemon.kill9();
    assert_eq!(files_with_output(&root), [] as [PathBuf; 0]);
    daemon.restart().await;
    let tail = delivered_tail(&daemon.api().await, &id).await.unwrap();
    assert!(text(&tail).contains(WRITTEN), "it is read from memory");
    daemon.terminate();
    assert_eq!(files_with_output(&root), [] as [PathBuf; 0]);
    assert!(!contains_output(daemon.log().as_bytes()));
}

/// L9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_remove_no_old_event_carries_a_tail_and_no_file_contains_the_output() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let background = api.start(shell(script())).await.id;
    api.ended(&background).await;
    let foreground = run_in_the_foreground(&api).await;
    for id in [&background, &foreground] {
        let tail = delivered_tail(&api, id).await.unwrap();
        assert_eq!(text(&tail).matches(WRITTEN).count(), 2);
    }
    assert!(!files_with_output(&daemon.path("")).is_empty());

    api.remove([&*background, &*foreground]).await.unwrap();
    for id in [&background, &foreground] {
        assert_eq!(delivered_tail(&api, id).await, None);
    }
    let roots = [daemon.path(""), daemon.memory_dir()];
    for root in roots.iter().filter(|root| root.exists()) {
        assert_eq!(files_with_output(root), [] as [PathBuf; 0]);
    }
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    for id in [&background, &foreground] {
        assert_eq!(delivered_tail(&api, id).await, None, "after a restart");
    }
    daemon.terminate();
    assert_eq!(files_with_output(&daemon.path("")), [] as [PathBuf; 0]);
}

/// L9: retention removes what Remove removes.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_pruned_task_leaves_no_tail_in_its_old_events() {
    let daemon = Daemon::builder().arg("--keep-finished=1").start().await;
    let api = daemon.api().await;
    let mut watch = api.watch_after(api.revision().await).await;
    let first = api.start(shell(script())).await.id;
    watch.until_of(&first, TaskEventType::Ended).await;
    let second = api.start(shell("exit 0")).await.id;
    watch.until_of(&second, TaskEventType::Ended).await;
    watch.until_of(&first, TaskEventType::Removed).await;
    assert_eq!(delivered_tail(&api, &first).await, None);
}

/// E5
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_watcher_gets_the_same_tail_live_and_from_the_past() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let from = api.revision().await;
    let mut watches = Vec::new();
    for _ in 0..50 {
        watches.push(api.watch_after(from).await);
    }
    let id = api.start(shell(script())).await.id;
    let mut tails = Vec::new();
    for watch in &mut watches {
        let mut events = watch.until_of(&id, TaskEventType::Ended).await;
        tails.push(events.pop().unwrap().output_tail);
    }
    tails.push(delivered_tail(&api, &id).await);
    let first = tails[0].clone().unwrap();
    assert_eq!(text(&first).matches(WRITTEN).count(), 2);
    assert!(tails.iter().all(|tail| tail.as_ref() == Some(&first)));
}
