//! The disk space for the output of all tasks.

use std::{fs, os::unix::fs::MetadataExt};

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _,
    disk::files_below,
    eventually, numbered,
    output::{end, gap, raw},
    v1::*,
};

const MIB: u64 = 1 << 20;
const BUDGET: u64 = 8 * MIB;

/// The disk space of all task files.
fn on_disk(daemon: &Daemon) -> u64 {
    let files = files_below(&daemon.state_dir().join("tasks"));
    let stored = |path: &std::path::PathBuf| fs::metadata(path).map_or(0, |it| it.blocks() * 512);
    files.iter().map(stored).sum()
}

/// Starts a task that writes so many bytes, and then nothing.
async fn quiet(daemon: &Daemon, api: &Api, bytes: u64) -> String {
    let script = format!("count {bytes} forever");
    let id = api.start(daemon.script(&script)).await.id;
    api.output_reaches(&id, bytes).await;
    id
}

/// Asserts that the newest output is there, and that what is missing was rotated out.
async fn assert_newest_kept(api: &Api, id: &str, written: u64) {
    let chunks = api.chunks(id).await.unwrap();
    let last = chunks.last().unwrap();
    assert_eq!(end(last), written);
    for chunk in &chunks {
        match gap(chunk) {
            Some(gap) => assert_eq!(gap.cause(), OutputGapCause::Rotated),
            None => assert!(raw(chunk) == numbered(chunk.offset..end(chunk))),
        }
    }
    let tail: u64 = chunks
        .iter()
        .rev()
        .take_while(|chunk| gap(chunk).is_none())
        .map(|chunk| raw(chunk).len() as u64)
        .sum();
    assert!(tail > 100_000, "{tail} bytes of {written}");
}

/// O18, L7, L9
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finished_tasks_make_room_first_and_then_the_largest_live_ones() {
    let daemon = Daemon::builder()
        .arg(format!("--max-output={BUDGET}"))
        .start()
        .await;
    let api = daemon.api().await;
    let finished = api.start(daemon.script("count 3000000")).await.id;
    api.ended(&finished).await;
    let small = quiet(&daemon, &api, 500_000).await;
    let mut large = Vec::new();
    for _ in 0..3 {
        large.push(quiet(&daemon, &api, 6_000_000).await);
    }
    eventually("room", || on_disk(&daemon) <= BUDGET).await;
    let removed = api.read(heeler_tests::request::read(&finished, 0)).await;
    assert_eq!(removed.unwrap_err().code(), tonic::Code::NotFound);
    assert!(!daemon.task_file(&finished).exists());
    for id in &large {
        assert_newest_kept(&api, id, 6_000_000).await;
    }
    let kept = api.chunks(&small).await.unwrap();
    assert!(kept.iter().all(|chunk| gap(chunk).is_none()), "{kept:?}");
    daemon.logged("exceeds --max-output").await;
    let mut watch = api.watch_after(0).await;
    let limit = watch.until_of(&large[0], TaskEventType::OutputLimit).await;
    let limited = limit.last().and_then(|event| event.task.clone()).unwrap();
    assert_eq!(limited.state(), TaskState::Running);
    assert_eq!(
        limited.output_limit.unwrap().cause(),
        OutputLimitCause::ServerBudget
    );
    let kinds = api.event_types(&large[0]).await;
    let count = |wanted| kinds.iter().filter(|kind| **kind == wanted).count();
    assert_eq!(count(TaskEventType::OutputLimit), 1, "{kinds:?}");
    let card = daemon.heeler(["inspect", &large[0]]).await.ok().stdout;
    assert!(card.contains("by the daemon's --max-output"), "{card}");
    assert!(card.contains("of output are not kept"), "{card}");
}

/// O18
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_write_on_stay_within_the_budget() {
    let daemon = Daemon::builder()
        .arg(format!("--max-output={BUDGET}"))
        .start()
        .await;
    let api = daemon.api().await;
    let mut ids = Vec::new();
    for on_limit in [
        OutputLimitAction::Rotate,
        OutputLimitAction::Truncate,
        OutputLimitAction::Kill,
    ] {
        let request = daemon
            .script("count 40000000 forever")
            .with_max_output(1 << 40)
            .with_on_output_limit(on_limit);
        ids.push(api.start(request).await.id);
    }
    for id in &ids {
        api.output_reaches(id, 40_000_000).await;
    }
    eventually("room", || on_disk(&daemon) <= BUDGET).await;
    for id in &ids {
        assert_newest_kept(&api, id, 40_000_000).await;
        assert_eq!(api.task(id).await.state(), TaskState::Running);
    }
}

/// O18, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restarted_server_counts_what_is_on_the_disk() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(quiet(&daemon, &api, 5_000_000).await);
    }
    assert!(on_disk(&daemon) > BUDGET);
    daemon.kill9();
    daemon.add_arg(&format!("--max-output={BUDGET}"));
    daemon.restart().await;
    eventually("room", || on_disk(&daemon) <= BUDGET).await;
    let api = daemon.api().await;
    for id in &ids {
        assert_newest_kept(&api, id, 5_000_000).await;
    }
}
