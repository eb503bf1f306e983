//! Output in memory: small output stays there, larger output spills to the disk.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use heeler_server::internal::{Item, RecordSync, ShimOrder, TaskDir};
use heeler_shim::memory_file::MEMORY_LIMIT;
use heeler_tests::{Daemon, LoneShims, LoneTask, SmallDisk, eventually, pattern, shell, task_file};
use nix::sys::signal::Signal;

const LIMIT: usize = MEMORY_LIMIT as usize;
/// The size of the page with the records.
const HEADER: u64 = 4096;

/// A script that writes these bytes.
fn writes(shims: &LoneShims, bytes: &[u8]) -> String {
    let path = shims.path("bytes");
    fs::write(&path, bytes).unwrap();
    format!("cat {}", path.display())
}

/// A script that waits for a file.
fn waits_for(path: &Path) -> String {
    format!("while ! test -e {}; do sleep 0.01; done", path.display())
}

/// F9
#[tokio::test]
async fn small_output_never_reaches_the_disk() {
    let shims = LoneShims::new();
    let mut task = shims.start("printf one; printf two >&2; exit 3").await;
    let end = task.ended().await;
    assert_eq!((end.output_end, end.discarded), (6, 0));
    assert!(task.is_in_memory());
    assert!(task.bytes_on_disk() <= HEADER, "{}", task.bytes_on_disk());
    assert_eq!(task.output(), b"onetwo");
    // It needs neither the server nor the shim.
    task.hang_up();
    eventually("the end of the shim", || {
        task.shim().is_none_or(|shim| !shim.is_alive())
    })
    .await;
    assert_eq!(task.output(), b"onetwo");
    shims.dir.remove(&task.id).unwrap();
    assert!(!task.is_in_memory());
    assert!(shims.dir.open(&task.id).unwrap().is_none());
}

/// F10
#[tokio::test]
async fn past_the_limit_all_output_is_on_the_disk() {
    let shims = LoneShims::new();
    for len in [
        LIMIT - 1,
        LIMIT,
        LIMIT + 1,
        LIMIT + 65_536,
        3 * LIMIT + 17,
        10 * LIMIT,
    ] {
        let expected = pattern(len);
        let mut task = shims.start(&writes(&shims, &expected)).await;
        let end = task.ended().await;
        assert_eq!((end.output_end, end.discarded), (len as u64, 0));
        assert_eq!(task.is_in_memory(), len <= LIMIT, "{len} bytes");
        assert_eq!(
            task.bytes_on_disk() > len as u64,
            len > LIMIT,
            "{len} bytes"
        );
        assert!(task.output() == expected, "{len} bytes");
    }
}

/// F10
#[tokio::test]
async fn output_in_writes_of_any_size_spills_complete() {
    let shims = LoneShims::new();
    for (size, len) in [
        (1, 120_000),
        (37, 900_000),
        (1000, 1_200_000),
        (4093, 2_000_000),
    ] {
        let expected = pattern(len);
        let bytes = writes(&shims, &expected);
        let script = format!("{bytes} | dd bs={size} iflag=fullblock status=none");
        let mut task = shims.start(&script).await;
        let end = task.ended().await;
        assert_eq!((end.output_end, end.discarded), (len as u64, 0));
        assert!(task.output() == expected, "writes of {size}");
        let in_memory = fs::metadata(task.memory_file()).map_or(0, |found| found.len());
        assert!(in_memory <= 2 * MEMORY_LIMIT, "{in_memory}");
    }
}

/// F2
#[tokio::test]
async fn output_before_and_after_a_spill_order_is_one_sequence() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!("seq 1 1000; {}; seq 1001 2000", waits_for(&gate));
    let mut task = shims.start(&script).await;
    task.output_beyond(3000).await;
    assert!(task.is_in_memory());
    task.order(ShimOrder::Spill).await;
    eventually("the copy on disk", || !task.is_in_memory()).await;
    let before: Vec<u8> = (1..=1000).flat_map(line).collect();
    assert!(task.output() == before);
    // A second order changes nothing.
    task.order(ShimOrder::Spill).await;
    fs::write(gate, "").unwrap();
    task.ended().await;
    assert!(task.output() == (1..=2000).flat_map(line).collect::<Vec<u8>>());
    assert!(!task.is_in_memory());
}

fn line(n: u32) -> Vec<u8> {
    format!("{n}\n").into_bytes()
}

/// F8: a spill order after the end finds no shim, so the server moves the output.
#[tokio::test]
async fn output_of_a_finished_task_is_spilled_without_its_shim() {
    let shims = LoneShims::new();
    let expected = pattern(300_000);
    let script = format!("{}; exit 3", writes(&shims, &expected));
    let mut task = shims.start(&script).await;
    task.ended().await;
    shims.dir.spill(&task.id).unwrap();
    assert!(!task.is_in_memory());
    assert!(task.output() == expected);
    shims.dir.spill(&task.id).unwrap();
    assert!(task.output() == expected);
    let mut task = shims.start("echo here; sleep 600").await;
    task.output_beyond(0).await;
    let refused = shims.dir.spill(&task.id).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
    assert!(task.is_in_memory());
}

/// Reads output continuously, and opens the file for each read.
struct Reader {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Vec<u8>>,
}

impl Reader {
    fn of(dir: &TaskDir, task: &LoneTask) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (dir, id, stopped) = (dir.clone(), task.id.clone(), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let mut seen: Vec<u8> = Vec::new();
            loop {
                let last = stopped.load(Ordering::Acquire);
                let file = dir.open(&id).unwrap().unwrap();
                for item in file.read(seen.len() as u64, 100_000).unwrap().items {
                    let Item::Chunk(chunk) = item else {
                        panic!("{item:?}");
                    };
                    assert_eq!(chunk.offset, seen.len() as u64, "a gap");
                    seen.extend(chunk.data);
                }
                let end = file.tail(0).unwrap().end;
                assert!(end >= seen.len() as u64, "{end} after {}", seen.len());
                if last && end == seen.len() as u64 {
                    return seen;
                }
                std::thread::yield_now();
            }
        });
        Self { stop, thread }
    }

    /// Reads to the end, and returns everything.
    fn finish(self) -> Vec<u8> {
        self.stop.store(true, Ordering::Release);
        self.thread.join().unwrap()
    }
}

/// F2, O2
#[tokio::test]
async fn a_reader_sees_one_sequence_while_output_spills() {
    let shims = LoneShims::new();
    let expected = pattern(2_500_000);
    let script = writes(&shims, &expected);
    for round in 0..12 {
        let gate = shims.path(&format!("gate-{round}"));
        // Small writes, so that the spill happens among them.
        let script = format!(
            "{script} | dd bs=500 iflag=fullblock status=none; {}",
            waits_for(&gate)
        );
        let mut task = shims.start(&script).await;
        let reader = Reader::of(&shims.dir, &task);
        task.output_beyond(round * 70_000).await;
        task.order(ShimOrder::Spill).await;
        fs::write(gate, "").unwrap();
        let end = task.ended().await;
        assert_eq!((end.output_end, end.discarded), (2_500_000, 0));
        assert!(reader.finish() == expected, "round {round}");
        assert!(task.output() == expected, "round {round}");
        assert!(!task.is_in_memory());
    }
}

/// R2: output that a reader has seen stays, and none is repeated.
#[tokio::test]
async fn a_shim_killed_during_a_spill_loses_no_output() {
    let shims = LoneShims::with(Path::new("/tmp"), Path::new("/dev/shm"), RecordSync::Synced);
    let expected = pattern(2_500_000);
    let script = writes(&shims, &expected);
    let script = format!("{script} | dd bs=500 iflag=fullblock status=none; sleep 600");
    let (mut in_memory, mut on_disk) = (0, 0);
    for round in 0..24 {
        let mut task = shims.start(&script).await;
        let shim = task.shim().unwrap();
        let reader = Reader::of(&shims.dir, &task);
        task.output_beyond(round * 40_000).await;
        task.order(ShimOrder::Spill).await;
        for _ in 0..(round % 6) * 8 {
            std::thread::yield_now();
        }
        shim.signal(Signal::SIGKILL);
        eventually("the end of the shim", || !shim.is_alive()).await;
        let seen = reader.finish();
        let left = task.output();
        assert!(left.starts_with(&seen), "round {round}: {}", seen.len());
        assert!(expected.starts_with(&left), "round {round}: {}", left.len());
        match task.is_in_memory() {
            true => in_memory += 1,
            false => on_disk += 1,
        }
        // The next server can still spill it.
        shims.dir.spill(&task.id).unwrap();
        assert!(task.output() == left, "round {round}");
    }
    eprintln!("killed with its output in memory: {in_memory}, on the disk: {on_disk}");
}

/// R2
#[tokio::test]
async fn an_incomplete_copy_on_disk_is_not_read() {
    use std::os::unix::fs::FileExt;
    let shims = LoneShims::new();
    let expected = pattern(500_000);
    let mut task = shims.start(&writes(&shims, &expected)).await;
    task.ended().await;
    let whole = fs::read(task.memory_file()).unwrap();
    let file = fs::File::options()
        .write(true)
        .open(shims.dir.path(&task.id))
        .unwrap();
    for len in [1, 24, 44, 65_536, 200_000] {
        let from = HEADER as usize;
        file.write_all_at(&whole[from..from + len], HEADER).unwrap();
        assert!(task.output() == expected);
    }
    shims.dir.spill(&task.id).unwrap();
    assert!(task.output() == expected);
}

/// F9: a clean-up of /dev/shm removes the name, not the file that the shim has open.
#[tokio::test]
async fn an_unlinked_memory_file_is_saved_at_the_end() {
    let shims = LoneShims::new();
    let gate = shims.path("gate");
    let script = format!("echo before; {}; echo after", waits_for(&gate));
    let mut task = shims.start(&script).await;
    task.output_beyond(0).await;
    fs::remove_file(task.memory_file()).unwrap();
    fs::write(gate, "").unwrap();
    let end = task.ended().await;
    assert_eq!((end.output_end, end.discarded), (13, 0));
    assert_eq!(task.output(), b"before\nafter\n");
}

/// O14
#[tokio::test]
async fn output_goes_to_the_disk_when_memory_is_full() {
    let Some(small) = SmallDisk::mount(4) else {
        return;
    };
    let shims = LoneShims::with(Path::new("/tmp"), small.path(), RecordSync::Cached);
    let gate = shims.path("gate");
    let script = format!("echo begun; {}; seq 1 100000", waits_for(&gate));
    let mut task = shims.start(&script).await;
    task.output_beyond(0).await;
    assert!(task.is_in_memory());
    // Half of the memory is reserved, so there is no space for a second task.
    let mut second = shims.start("echo to the disk").await;
    assert!(!second.is_in_memory());
    small.fill();
    fs::write(gate, "").unwrap();
    let end = task.ended().await;
    assert_eq!((end.capture_errno, end.discarded), (0, 0));
    let expected = [b"begun\n".to_vec(), (1..=100_000).flat_map(line).collect()].concat();
    assert!(task.output() == expected);
    assert!(!task.is_in_memory());
    second.ended().await;
    assert_eq!(second.output(), b"to the disk\n");
}

/// O14
#[tokio::test]
async fn output_that_a_full_disk_cannot_take_stays_in_memory_up_to_the_limit() {
    let Some(small) = SmallDisk::mount(4) else {
        return;
    };
    let gates = tempfile::tempdir_in("/tmp").unwrap();
    let [first, second] = ["first", "second"].map(|name| gates.path().join(name));
    let shims = LoneShims::with(small.path(), Path::new("/dev/shm"), RecordSync::Cached);
    let script = format!(
        "seq 1 1000; {}; seq 1001 2000; {}; seq 1 400000",
        waits_for(&first),
        waits_for(&second)
    );
    let mut task = shims.start(&script).await;
    task.output_beyond(3000).await;
    small.fill();
    task.order(ShimOrder::Spill).await;
    fs::write(first, "").unwrap();
    task.output_beyond(8000).await;
    assert!(task.is_in_memory());
    assert!(task.output() == (1..=2000).flat_map(line).collect::<Vec<u8>>());
    // The shim retries by itself.
    small.free();
    eventually("the copy on disk", || !task.is_in_memory()).await;
    fs::write(second, "").unwrap();
    let end = task.ended().await;
    assert_eq!((end.capture_errno, end.discarded), (0, 0));
    assert_eq!(end.output_end, task.output().len() as u64);
}

/// O14
#[tokio::test]
async fn output_that_neither_memory_nor_disk_can_take_is_counted() {
    let Some(small) = SmallDisk::mount(4) else {
        return;
    };
    let gates = tempfile::tempdir_in("/tmp").unwrap();
    let gate = gates.path().join("gate");
    let shims = LoneShims::with(small.path(), Path::new("/dev/shm"), RecordSync::Cached);
    let script = format!("echo begun; {}; seq 1 400000", waits_for(&gate));
    let expected = [b"begun\n".to_vec(), (1..=400_000).flat_map(line).collect()].concat();
    let mut task = shims.start(&script).await;
    task.output_beyond(0).await;
    small.fill();
    fs::write(gate, "").unwrap();
    let end = task.ended().await;
    assert_eq!(end.capture_errno, nix::libc::ENOSPC);
    assert_eq!(end.output_end, expected.len() as u64);
    assert!(task.is_in_memory());
    let kept = task.output();
    assert_eq!(kept.len() as u64 + end.discarded, end.output_end);
    assert!(kept.len() > LIMIT / 2, "{}", kept.len());
    assert!(expected.starts_with(&kept[..LIMIT / 8]), "the first bytes");
    assert!(expected.ends_with(&kept[LIMIT / 2..]), "the latest bytes");
}

/// A memory file of one frame.
fn in_memory(text: &str) -> Vec<u8> {
    let mut file = vec![0; HEADER as usize];
    file.extend(task_file::block(0));
    file.extend(task_file::frame(1, 1_700_000_000_000_000, text.as_bytes()));
    file
}

/// F9, O11, L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_memory_file_is_the_output_until_the_task_is_removed() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("echo disk")).await.id;
    api.ended(&id).await;
    let file = daemon.memory_file(&id);
    fs::create_dir_all(daemon.memory_dir()).unwrap();
    fs::write(&file, in_memory("memory\n")).unwrap();
    assert_eq!(api.lines(&id).await, ["memory"]);
    let stray = daemon.memory_file("shell-aaaaaaaaaa");
    fs::write(&stray, in_memory("stray\n")).unwrap();
    daemon.kill9();
    daemon.restart().await;
    eventually("the stray memory file to be deleted", || !stray.exists()).await;
    let api = daemon.api().await;
    assert_eq!(api.lines(&id).await, ["memory"]);
    api.remove([id]).await.unwrap();
    assert!(!file.exists());
}
