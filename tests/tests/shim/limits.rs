//! The limits on output: rotation, truncation, the kill, lower limits by order, and a full disk.

use std::{fs, path::Path};

use heeler_server::internal::{
    Gap, GapCause, Item, OnOutputLimit, OutputPolicy, RecordSync, ShimOrder, ShimReport,
};
use heeler_tests::{Begins, LoneShims, LoneTask, OutputRules, SmallDisk, eventually, numbered};
use nix::sys::signal::Signal;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// Rules that apply to the task file from the first byte on.
fn on_disk(max_bytes: u64, on_limit: OnOutputLimit) -> OutputRules {
    OutputRules {
        begins: Begins::OnDisk,
        policy: OutputPolicy {
            on_limit,
            ..OutputPolicy::with_limit(max_bytes)
        },
        budget: u64::MAX,
    }
}

/// A script that writes these bytes, in pieces of this size.
fn writes(shims: &LoneShims, bytes: &[u8], piece: usize) -> String {
    let path = shims.path("bytes");
    fs::write(&path, bytes).unwrap();
    let path = path.display();
    format!("dd if={path} bs={piece} status=none")
}

/// Checks that items follow one another and have the bytes that were written; returns the gaps.
fn gaps(items: &[Item], written: &[u8]) -> Vec<Gap> {
    let (mut at, mut gaps) = (0, Vec::new());
    for item in items {
        match item {
            Item::Chunk(chunk) => {
                assert_eq!(chunk.offset, at);
                let (from, to) = (at as usize, item.end() as usize);
                assert!(chunk.data == written[from..to], "the bytes at {at} differ");
            }
            Item::Gap(gap) => {
                assert_eq!(gap.offset, at);
                gaps.push(*gap);
            }
        }
        at = item.end();
    }
    gaps
}

/// Checks all output of a task, up to the end of it, and returns the only gap.
fn only_gap(task: &LoneTask, written: &[u8]) -> Gap {
    let reading = task.read(0);
    let gaps = gaps(&reading.items, written);
    assert_eq!(reading.items.last().unwrap().end(), reading.end);
    let [gap] = gaps[..] else {
        panic!("{gaps:?}");
    };
    gap
}

/// O8
#[tokio::test]
async fn rotated_output_has_its_beginning_and_its_end_within_the_limit() {
    let shims = LoneShims::new();
    let written = numbered(0..5_000_000);
    for (max_bytes, piece) in [
        (256 * KIB, 100),
        (MIB, 4096),
        (3 * MIB, 65_536),
        (MIB, 7777),
    ] {
        let script = writes(&shims, &written, piece);
        let rules = on_disk(max_bytes, OnOutputLimit::Rotate);
        let mut task = shims.start_with(rules, &script).await;
        let end = task.ended().await;
        assert_eq!((end.output_end, end.discarded), (5_000_000, 0));
        assert!(
            task.bytes_on_disk() <= max_bytes,
            "{}",
            task.bytes_on_disk()
        );
        let gap = only_gap(&task, &written);
        assert_eq!(gap.cause, GapCause::Rotated);
        assert!(
            gap.offset >= max_bytes / 8,
            "the head ends at {}",
            gap.offset
        );
        let kept = 5_000_000 - gap.length;
        assert!(kept >= max_bytes / 4, "{kept} of {max_bytes}");
        let limit = task.records().output.whole().unwrap().limit.unwrap();
        assert_eq!(limit.offset, gap.offset);
    }
}

/// O8, F10
#[tokio::test]
async fn a_limit_below_that_of_memory_keeps_output_in_memory() {
    let shims = LoneShims::new();
    let written = numbered(0..3_000_000);
    let rules = OutputRules {
        begins: Begins::InMemory,
        ..on_disk(512 * KIB, OnOutputLimit::Rotate)
    };
    let mut task = shims
        .start_with(rules, &writes(&shims, &written, 4096))
        .await;
    task.ended().await;
    assert!(task.is_in_memory());
    assert_eq!(task.bytes_on_disk(), 4096);
    assert!(fs::metadata(task.memory_file()).unwrap().len() <= 512 * KIB);
    let gap = only_gap(&task, &written);
    shims.dir.spill(&task.id).unwrap();
    assert!(!task.is_in_memory());
    assert_eq!(only_gap(&task, &written), gap);
    assert!(task.bytes_on_disk() <= 512 * KIB);
}

/// F10, O8
#[tokio::test]
async fn output_that_has_spilled_rotates_on_the_disk() {
    let shims = LoneShims::new();
    let written = numbered(0..8_000_000);
    let rules = OutputRules {
        begins: Begins::InMemory,
        ..on_disk(2 * MIB, OnOutputLimit::Rotate)
    };
    let mut task = shims
        .start_with(rules, &writes(&shims, &written, 30_000))
        .await;
    task.ended().await;
    assert!(!task.is_in_memory());
    assert!(task.bytes_on_disk() <= 2 * MIB);
    assert_eq!(only_gap(&task, &written).cause, GapCause::Rotated);
}

/// O8
#[tokio::test]
async fn truncated_output_is_counted_while_it_is_dropped() {
    let shims = LoneShims::new();
    let written = numbered(0..4_000_000);
    let gate = shims.path("gate");
    let script = format!(
        "{}; while ! test -e {}; do sleep 0.01; done; echo",
        writes(&shims, &written, 10_000),
        gate.display()
    );
    let rules = on_disk(MIB, OnOutputLimit::Truncate);
    let mut task = shims.start_with(rules, &script).await;
    // Everything is counted once the task is quiet.
    eventually("the count", || task.read(0).end == 4_000_000).await;
    let gap = only_gap(&task, &written);
    assert_eq!(gap.cause, GapCause::Truncated);
    assert_eq!(gap.offset + gap.length, 4_000_000);
    assert!(gap.offset > 900_000, "{gap:?}");
    let dropped = task.last_output().at.unwrap();
    fs::write(gate, "").unwrap();
    let end = task.ended().await;
    assert_eq!((end.output_end, end.discarded), (4_000_001, 0));
    let last = task.last_output();
    assert_eq!(last.end, 4_000_001);
    assert!(
        last.at.unwrap().mono > dropped.mono,
        "the time of dropped output counts"
    );
    assert!(task.bytes_on_disk() <= MIB);
}

/// O8
#[tokio::test]
async fn a_shim_without_a_server_kills_the_tree_at_the_limit() {
    let shims = LoneShims::new();
    let script = "trap '' TERM; (setsid sleep 600 &) ; while :; do seq 1 10000; done";
    let rules = on_disk(MIB, OnOutputLimit::Kill);
    let mut task = shims.start_with(rules, script).await;
    task.hang_up();
    let end = task.recorded_end().await;
    assert!(task.leader().is_none());
    let limit = task.records().output.whole().unwrap().limit.unwrap();
    assert!(limit.kills);
    assert!(limit.offset <= MIB && limit.offset > 900_000, "{limit:?}");
    assert!(end.output_end > limit.offset);
    assert!(task.bytes_on_disk() <= MIB);
}

/// O17
#[tokio::test]
async fn a_shim_killed_in_mid_rotation_leaves_its_output_readable() {
    let shims = LoneShims::new();
    let written = numbered(0..20_000_000);
    let script = format!("{}; sleep 600", writes(&shims, &written, 3_000));
    for round in 0..24u64 {
        let rules = on_disk(MIB, OnOutputLimit::Rotate);
        let mut task = shims.start_with(rules, &script).await;
        let shim = task.shim().unwrap();
        task.output_beyond(2_000_000 + round * 70_000).await;
        for _ in 0..(round % 6) * 8 {
            std::thread::yield_now();
        }
        shim.signal(Signal::SIGKILL);
        eventually("the end of the shim", || !shim.is_alive()).await;
        let gap = only_gap(&task, &written);
        assert_eq!(gap.cause, GapCause::Rotated, "round {round}");
        let kept = task.read(0).end - gap.length;
        assert!(kept > 700_000, "round {round}: {kept} bytes are left");
        assert!(task.bytes_on_disk() <= MIB, "round {round}");
    }
}

/// Waits until the shim has answered an order to limit its output; returns the size on disk.
async fn limited(task: &mut LoneTask, bytes: u64) -> u64 {
    task.order(ShimOrder::LimitOutput { bytes }).await;
    task.reported(
        "its size",
        |report| matches!(report, ShimReport::Stored { bytes: now } if now <= bytes),
    )
    .await;
    task.bytes_on_disk()
}

/// O18
#[tokio::test]
async fn an_ordered_limit_drops_the_oldest_output_of_a_quiet_task_at_once() {
    let shims = LoneShims::new();
    for (written, before) in [(3_000_000u64, 64 * MIB), (9_000_000, 4 * MIB)] {
        let bytes = numbered(0..written);
        let script = format!("{}; sleep 600", writes(&shims, &bytes, 20_000));
        for on_limit in [OnOutputLimit::Rotate, OnOutputLimit::Kill] {
            let rules = match on_limit {
                OnOutputLimit::Rotate | OnOutputLimit::Truncate => on_disk(before, on_limit),
                // Its own limit is far away.
                OnOutputLimit::Kill => on_disk(64 * MIB, on_limit),
            };
            let mut task = shims.start_with(rules, &script).await;
            task.output_beyond(written - 1).await;
            for limit in [2 * MIB, 700 * KIB, 256 * KIB] {
                assert!(limited(&mut task, limit).await <= limit);
                let gap = only_gap(&task, &bytes);
                assert_eq!(gap.cause, GapCause::Rotated);
                let kept = written - gap.length;
                assert!(kept > limit / 4, "{kept} of {limit}");
            }
            assert!(task.leader().is_some(), "it goes on");
            task.order(ShimOrder::Kill {
                within_millis: 10_000,
            })
            .await;
            task.ended().await;
        }
    }
}

/// O18, O17
#[tokio::test]
async fn output_goes_on_under_an_ordered_limit_and_is_whole_if_the_shim_is_killed() {
    let shims = LoneShims::new();
    let written = numbered(0..30_000_000);
    let script = format!("{}; sleep 600", writes(&shims, &written, 9_000));
    for round in 0..16u64 {
        let rules = on_disk(8 * MIB, OnOutputLimit::Rotate);
        let mut task = shims.start_with(rules, &script).await;
        let shim = task.shim().unwrap();
        task.output_beyond(3_000_000 + round * 1_200_000).await;
        let bytes = (3 + round % 5) * 300 * KIB;
        match round % 2 {
            0 => {
                assert!(limited(&mut task, bytes).await <= bytes, "round {round}");
                task.output_beyond(29_999_999).await;
            }
            _ => {
                task.order(ShimOrder::LimitOutput { bytes }).await;
                for _ in 0..round * 4 {
                    std::thread::yield_now();
                }
            }
        }
        shim.signal(Signal::SIGKILL);
        eventually("the end of the shim", || !shim.is_alive()).await;
        let reading = task.read(0);
        let gaps = gaps(&reading.items, &written);
        assert!(gaps.len() <= 1, "round {round}: {gaps:?}");
        assert_eq!(reading.items.last().unwrap().end(), reading.end);
        let missing: u64 = gaps.iter().map(|gap| gap.length).sum();
        assert!(reading.end - missing > 250_000, "round {round}: {gaps:?}");
    }
}

/// O18
#[tokio::test]
async fn stored_output_is_reported_as_it_grows_and_not_while_it_rotates() {
    let shims = LoneShims::new();
    let written = numbered(0..12_000_000);
    let rules = on_disk(MIB, OnOutputLimit::Rotate);
    let mut task = shims
        .start_with(rules, &writes(&shims, &written, 5_000))
        .await;
    let mut sizes = Vec::new();
    task.each_report("its end", |report| {
        if let ShimReport::Stored { bytes } = report {
            sizes.push(bytes);
        }
        matches!(report, ShimReport::TreeEnded { .. })
    })
    .await;
    assert!(sizes.is_sorted(), "{sizes:?}");
    assert!(sizes.len() > 5 && sizes.len() < 20, "{sizes:?}");
    assert!(sizes.last().unwrap() > &(900 * KIB), "{sizes:?}");
}

/// O14
#[tokio::test]
async fn a_disk_that_fills_up_in_mid_rotation_costs_nothing() {
    let Some(small) = SmallDisk::mount(8) else {
        return;
    };
    let gates = tempfile::tempdir_in("/tmp").unwrap();
    let gate = gates.path().join("gate");
    let shims = LoneShims::with(small.path(), Path::new("/dev/shm"), RecordSync::Cached);
    let written = numbered(0..6_000_000);
    let bytes = gates.path().join("bytes");
    fs::write(&bytes, &written).unwrap();
    let (bytes, wait) = (bytes.display(), gate.display());
    let script = format!(
        "head -c 3000000 {bytes}; while ! test -e {wait}; do sleep 0.01; done; tail -c +3000001 {bytes}"
    );
    let rules = on_disk(MIB, OnOutputLimit::Rotate);
    let mut task = shims.start_with(rules, &script).await;
    task.output_beyond(2_999_999).await;
    small.fill();
    fs::write(gate, "").unwrap();
    let end = task.ended().await;
    assert_eq!((end.capture_errno, end.discarded), (0, 0));
    assert_eq!(end.output_end, 6_000_000);
    assert_eq!(only_gap(&task, &written).cause, GapCause::Rotated);
}

/// O14
#[tokio::test]
async fn on_a_full_disk_the_newest_output_is_kept_and_the_lost_bytes_are_counted() {
    let Some(small) = SmallDisk::mount(4) else {
        return;
    };
    let inputs = tempfile::tempdir_in("/tmp").unwrap();
    let shims = LoneShims::with(small.path(), Path::new("/dev/shm"), RecordSync::Cached);
    let written = numbered(0..12_000_000);
    let bytes = inputs.path().join("bytes");
    fs::write(&bytes, &written).unwrap();
    let script = format!("dd if={} bs=30000 status=none", bytes.display());
    for on_limit in [OnOutputLimit::Rotate, OnOutputLimit::Truncate] {
        let rules = on_disk(64 * MIB, on_limit);
        let mut task = shims.start_with(rules, &script).await;
        let end = task.ended().await;
        assert_eq!(end.capture_errno, nix::libc::ENOSPC);
        assert_eq!(end.output_end, 12_000_000);
        let gap = only_gap(&task, &written);
        assert_eq!((gap.cause, gap.length), (GapCause::Lost, end.discarded));
        assert!(12_000_000 - gap.length > 2_000_000, "{gap:?}");
        assert!(task.records().output.whole().unwrap().limit.is_none());
        shims.dir.remove(&task.id).unwrap();
    }
}
