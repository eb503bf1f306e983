//! The limits on a task's output: the beginning and the latest bytes are kept, gaps are exact, and a task
//! that must not write more is killed.

use std::{fs, os::unix::fs::MetadataExt};

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, eventually, numbered,
    outcome::{assert_lost, proof_of, signals_sent},
    output::{bytes, end, gap, raw},
    secs, shell,
    task_file::shim_of,
    v1::*,
    watch::task_of,
};
use nix::sys::signal::Signal;

const MIB: u64 = 1 << 20;
/// The default limit, and the beginning that it keeps.
const LIMIT: u64 = 64 * MIB;
const HEAD: u64 = MIB;

/// The disk space of a task's file.
fn on_disk(daemon: &Daemon, id: &str) -> u64 {
    let found = fs::metadata(daemon.task_file(id)).unwrap();
    found.len().max(found.blocks() * 512)
}

/// Checks that all output but one gap is there, byte for byte, and returns the gap.
fn only_gap(chunks: &[OutputChunk]) -> OutputChunk {
    let mut gaps = Vec::new();
    for chunk in chunks {
        match gap(chunk) {
            Some(_) => gaps.push(chunk.clone()),
            None => {
                let expected = numbered(chunk.offset..end(chunk));
                assert!(raw(chunk) == expected, "bytes at {}", chunk.offset);
            }
        }
    }
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    gaps.remove(0)
}

/// Waits until a task has written this much, however long that takes.
async fn has_written(api: &Api, id: &str, bytes: u64) {
    for part in 1..=8 {
        api.output_reaches(id, bytes * part / 8).await;
    }
}

/// Asserts the gap of output under the default limit.
fn assert_rotated(chunk: &OutputChunk, written: u64) {
    let missing = gap(chunk).unwrap();
    assert_eq!(missing.cause(), OutputGapCause::Rotated);
    assert!(
        chunk.offset >= HEAD && chunk.offset < HEAD + MIB,
        "{chunk:?}"
    );
    let kept = written - missing.length;
    assert!(kept > LIMIT - 2 * MIB, "{kept} bytes are kept");
}

/// O17, O11
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn four_hundred_megabytes_rotate_across_crashes_of_the_server() {
    const ALL: u64 = 400_000_000;
    let mut daemon = Daemon::start().await;
    let id = daemon
        .api()
        .await
        .start(daemon.script(&format!("count {ALL}")))
        .await
        .id;
    for written in [100_000_000, 220_000_000] {
        has_written(&daemon.api().await, &id, written).await;
        daemon.kill9();
        assert!(on_disk(&daemon, &id) <= LIMIT);
        daemon.restart().await;
    }
    let api = daemon.api().await;
    has_written(&api, &id, ALL).await;
    let task = api.ended(&id).await;
    assert_eq!(
        (task.state(), task.output_bytes),
        (TaskState::Completed, ALL)
    );
    assert!(on_disk(&daemon, &id) <= LIMIT, "{}", on_disk(&daemon, &id));

    let chunks = api.chunks(&id).await.unwrap();
    assert_eq!(end(chunks.last().unwrap()), ALL);
    let missing = only_gap(&chunks);
    assert_rotated(&missing, ALL);
    let limit = task.output_limit.unwrap();
    assert_eq!(limit.cause(), OutputLimitCause::Policy);
    assert_eq!(limit.offset, missing.offset);
    use TaskEventType::{Created, Ended, OutputLimit, Started};
    let events = api.event_types(&id).await;
    assert_eq!(events, [Created, Started, OutputLimit, Ended]);

    let inspected = api.inspect(&id).await.unwrap();
    let info = inspected.output.unwrap();
    assert_eq!(
        (info.end_offset, &info.gaps[..]),
        (ALL, &[missing.clone()][..])
    );
    assert!(info.stored_bytes <= LIMIT, "{}", info.stored_bytes);
    let mut attachment = api.attach(&id).await;
    attachment.ended().await;
    assert_eq!(attachment.gaps, std::slice::from_ref(&missing));
    let length = gap(&missing).unwrap().length;
    assert_eq!(attachment.output.len() as u64, ALL - length);

    let logs = daemon.heeler(["logs", &id]).await.ok();
    let (from, to) = (missing.offset, end(&missing));
    assert!(logs.stdout.as_bytes() == attachment.output);
    let note = format!("of output are not kept (offsets {from} to {to})");
    assert!(logs.stderr.contains(&note), "{}", logs.stderr);
    let last = daemon.heeler(["logs", "-n", "2", &id]).await.ok();
    assert_eq!(
        last.stdout,
        String::from_utf8(numbered(ALL - 20..ALL)).unwrap()
    );
}

/// O17, R2
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn output_is_whole_after_its_shim_was_killed_in_mid_rotation() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "count 1000000000").await;
    has_written(&api, &fixture.id, 150_000_000).await;
    shim_of(&fixture.process("leader").await).signal(Signal::SIGKILL);
    let task = api.ended(&fixture.id).await;
    assert_lost(&task, "its shim was gone");
    let chunks = api.chunks(&fixture.id).await.unwrap();
    let written = end(chunks.last().unwrap());
    assert_eq!(written, task.output_bytes);
    assert_rotated(&only_gap(&chunks), written);
    assert!(on_disk(&daemon, &fixture.id) <= LIMIT);
}

/// O8, E5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn truncated_output_ends_in_a_gap_everywhere() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = daemon
        .script("count 5000000")
        .with_max_output(MIB)
        .with_on_output_limit(OutputLimitAction::Truncate);
    let id = api.start(request).await.id;
    let task = api.ended(&id).await;
    assert_eq!(task.state(), TaskState::Completed);
    let chunks = api.chunks(&id).await.unwrap();
    let missing = only_gap(&chunks);
    assert_eq!(end(&missing), 5_000_000);
    assert_eq!(gap(&missing).unwrap().cause(), OutputGapCause::Truncated);
    assert_eq!(task.output_limit.unwrap().offset, missing.offset);
    let inspected = api.inspect(&id).await.unwrap();
    let gaps = inspected.output.unwrap().gaps;
    assert_eq!(gaps, std::slice::from_ref(&missing));
    let history = api.history_of(&id).await;
    let tail = history.last().unwrap().output_tail.clone().unwrap();
    assert_eq!(tail.end_offset, 5_000_000);
    let (dropped, kept) = tail.chunks.split_last().unwrap();
    assert_eq!(dropped, &missing);
    assert_eq!(bytes(kept), numbered(missing.offset - 4096..missing.offset));
    assert!(on_disk(&daemon, &id) <= MIB);
}

/// O8, T4: output that is dropped is output.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn dropped_output_pushes_an_idle_timeout_back() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "head -c 2000000 /dev/zero; for i in $(seq 40); do echo; sleep 0.1; done";
    let request = shell(script)
        .with_max_output(256 << 10)
        .with_on_output_limit(OutputLimitAction::Truncate)
        .with_idle_timeout(secs(3));
    let id = api.start(request).await.id;
    let task = api.ended(&id).await;
    assert_eq!(task.state(), TaskState::Completed, "{task:?}");
    assert_eq!(task.output_bytes, 2_000_040);
}

/// Asserts the end of a task that was killed for its output, and its events.
async fn assert_killed(api: &Api, id: &str) {
    let task = api.ended(id).await;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.end_reason(), EndReason::OutputLimit);
    assert_eq!(task.stop.as_ref().unwrap().cause(), EndReason::OutputLimit);
    assert_eq!(signals_sent(&task), ["SIGKILL"]);
    proof_of(&task);
    let limit = task.output_limit.unwrap();
    assert!(limit.offset <= MIB && task.output_bytes > limit.offset);
    use TaskEventType::{Created, Ended, LeaderExited, OutputLimit, Started, Stopping};
    let mut events = api.event_types(id).await;
    // The leader may be reaped before the rest of its tree.
    events.retain(|kind| *kind != LeaderExited);
    assert_eq!(events, [Created, Started, OutputLimit, Stopping, Ended]);
}

/// O8, C4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_writes_too_much_is_killed_with_its_tree() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = daemon
        .script("ignore TERM fork [ setsid pid hidden forever ] flood")
        .with_max_output(MIB)
        .with_on_output_limit(OutputLimitAction::Kill);
    let id = api.start(script).await.id;
    assert_killed(&api, &id).await;
    daemon.no_processes().await;
    assert!(on_disk(&daemon, &id) <= MIB);
    let waited = daemon.heeler(["wait", &id]).await;
    assert_ne!(waited.code, Some(0), "{waited:?}");
    let card = daemon.heeler(["inspect", &id]).await.ok().stdout;
    assert!(card.contains("it wrote too much output"), "{card}");
    assert!(card.contains("1.0 MiB, then killed"), "{card}");
}

/// O8, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_writes_too_much_is_killed_while_no_server_runs() {
    let mut daemon = Daemon::start().await;
    let gate = daemon.gate("gate");
    let script = format!("gate {} flood", daemon.file("gate"));
    let request = daemon
        .script(&script)
        .with_max_output(MIB)
        .with_on_output_limit(OutputLimitAction::Kill);
    let task = daemon.api().await.start(request).await;
    let leader = heeler_tests::Process::now(task.leader.unwrap().pid).unwrap();
    daemon.kill9();
    gate.open();
    eventually("the end of the leader", || leader.is_gone()).await;
    daemon.restart().await;
    assert_killed(&daemon.api().await, &task.id).await;
}

/// O9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn short_writes_and_a_long_line_keep_memory_bounded() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("dots 50000")).await.id;
    api.ended(&id).await;
    assert_eq!(api.output(&id).await, vec![b'.'; 50_000]);
    let before = peak_memory(daemon.pid());
    let fixture = daemon
        .run(&api, "print ready count 100000000 forever")
        .await;
    has_written(&api, &fixture.id, 100_000_000).await;
    let mut offset = 0;
    while offset < 100_000_000 {
        let page = api
            .read(heeler_tests::request::read(&fixture.id, offset))
            .await;
        offset = page.unwrap().next_offset;
    }
    let shim = shim_of(&fixture.process("leader").await);
    assert!(peak_memory(shim.pid) < MIB, "{}", peak_memory(shim.pid));
    let grown = peak_memory(daemon.pid()) - before;
    assert!(grown < 16 * MIB, "the server has grown by {grown}");
}

/// The largest resident memory of a process so far.
fn peak_memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}

/// F10, O8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_client_gets_the_gap_that_it_was_too_slow_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = daemon
        .script("count 20000000")
        .with_max_output(2 * MIB)
        .in_foreground()
        .with_reattach_window(secs(60));
    let id = api.start(request).await.id;
    let mut attachment = api.attach(&id).await;
    let written = api.until(&id, TaskState::Completed).await.output_bytes;
    assert_eq!(written, 20_000_000);
    attachment.ended().await;
    let missing: u64 = attachment
        .gaps
        .iter()
        .map(|chunk| gap(chunk).unwrap().length)
        .sum();
    assert_eq!(attachment.output.len() as u64 + missing, written);
    assert!(attachment.output.ends_with(&numbered(19_000_000..written)));
    assert!(on_disk(&daemon, &id) <= 2 * MIB);
    let run = daemon
        .heeler(["run", "--max-output", "256KiB", "-c", "seq 1 1000000"])
        .await
        .ok();
    assert!(run.stdout.ends_with("999999\n1000000\n"));
}

/// O8, E5: a limit is in the task and in its event.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_policy_is_shown_with_its_defaults() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let plain = api.start(shell("true")).await.spec.unwrap().output.unwrap();
    assert_eq!((plain.max_bytes, plain.head_bytes), (LIMIT, Some(HEAD)));
    assert_eq!(plain.on_limit(), OutputLimitAction::Rotate);
    let small = shell("seq 1 400000").with_max_output(MIB);
    let task = api.start(small).await;
    let policy = task.spec.unwrap().output.unwrap();
    assert_eq!((policy.max_bytes, policy.head_bytes), (MIB, Some(MIB / 4)));
    api.ended(&task.id).await;
    let history = api.history_of(&task.id).await;
    let event = history
        .iter()
        .find(|event| event.r#type() == TaskEventType::OutputLimit)
        .unwrap();
    let limit = task_of(event).output_limit.unwrap();
    assert_eq!(limit.cause(), OutputLimitCause::Policy);
    let line = daemon
        .heeler(["events", "--type", "output-limit"])
        .await
        .ok()
        .stdout;
    assert!(line.contains("OUTPUT_LIMIT"), "{line}");
    assert!(
        line.contains(&format!("from offset {} on", limit.offset)),
        "{line}"
    );
}
