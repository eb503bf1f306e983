//! Task files and messages of shims of format version 2, which a newer server must understand.
//! Every byte is written literally: see `heeler_tests::task_file` for the layout.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    os::{
        linux::net::SocketAddrExt,
        unix::{
            fs::FileExt,
            net::{SocketAddr, UnixListener, UnixStream},
        },
    },
    path::Path,
};

use heeler_tests::{
    Daemon, millis,
    outcome::{exit_code, outcome},
    process::kill_all,
    task_file::{
        LEADER_EXIT, TREE_END, block, boot_id, exited, frame, identity, monotonic, no_output_state,
        running, shim_of, slot, tree_end, uuid, words,
    },
    v1::{outcome::Result as Ended, *},
};
use nix::fcntl::{Flock, FlockArg};

const STARTED: u64 = 1_700_000_000_000_000;
const EXITED: u64 = 1_700_000_001_000_000;
const GONE: u64 = 1_700_000_002_000_000;

/// A daemon that is down, and a live task whose processes and file are gone.
async fn without_task_file() -> (Daemon, BackgroundTask) {
    // The records below have no cgroup.
    let mut daemon = Daemon::builder().containment("subreaper").start().await;
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let leader = fixture.process("leader").await;
    let shim = shim_of(&leader);
    daemon.kill9();
    kill_all(&[shim, leader]).await;
    fs::remove_file(daemon.task_file(&fixture.id)).unwrap();
    (daemon, fixture.task)
}

fn header(task: &BackgroundTask, shim_pid: u64) -> Vec<u8> {
    let leader = task.leader.as_ref().unwrap().pid as u64;
    let identity = identity(uuid(&task.uid), boot_id(), shim_pid);
    [identity, running(leader, 1, STARTED)].concat()
}

/// R8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_file_of_version_2_is_read_with_records_and_output() {
    let (mut daemon, task) = without_task_file().await;
    let file = [
        header(&task, 4_000_000),
        exited(42, EXITED, 9),
        tree_end(GONE, 14),
        no_output_state(),
        block(0),
        frame(1, EXITED, b"out\n"),
        frame(2, EXITED, b"err\nx"),
        frame(1, GONE, b"late\n"),
    ];
    fs::write(daemon.task_file(&task.id), file.concat()).unwrap();
    daemon.restart().await;
    let api = daemon.api().await;
    let ended = api.task(&task.id).await;
    assert_eq!(ended.state(), TaskState::Failed);
    assert_eq!(exit_code(&ended), 42);
    assert_eq!(ended.output_bytes, 14);
    assert_eq!(ended.end_time.unwrap().seconds, (GONE / 1_000_000) as i64);
    let read = api
        .read(heeler_tests::request::read(&task.id, 0))
        .await
        .unwrap();
    let chunks: Vec<_> = read
        .chunks
        .iter()
        .map(|chunk| (chunk.stream(), heeler_tests::output::raw(chunk)))
        .collect();
    let expected: [(OutputStream, &[u8]); 3] = [
        (OutputStream::Stdout, b"out\n"),
        (OutputStream::Stderr, b"err\nx"),
        (OutputStream::Stdout, b"late\n"),
    ];
    assert_eq!(chunks, expected);
}

/// R8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_death_by_signal_and_a_capture_error_of_version_2_are_read() {
    let (mut daemon, task) = without_task_file().await;
    let (signalled, segv, core_dumped) = (1, 11, 1);
    let exit = words(&[signalled, segv, core_dumped, EXITED, monotonic(EXITED), 0]);
    let (enospc, discarded) = (28, 77);
    let end = words(&[GONE, monotonic(GONE), 0, 0, 0, 0, enospc, discarded, 0]);
    let file = [
        header(&task, 4_000_000),
        slot(b'L', &exit),
        slot(b'T', &end),
    ];
    fs::write(daemon.task_file(&task.id), file.concat()).unwrap();
    daemon.restart().await;
    let ended = daemon.api().await.task(&task.id).await;
    let signal = SignalOutcome {
        number: 11,
        name: "SIGSEGV".into(),
        core_dumped: true,
    };
    assert!(ended.capture_error.contains("77 bytes"), "{ended:?}");
    assert_eq!(outcome(&ended), &Ended::Signal(signal));
}

/// A stand-in for a shim of version 2: it locks the file and answers on the socket.
struct OldShim {
    file: Flock<File>,
    listener: UnixListener,
}

impl OldShim {
    fn new(path: &Path, task: &BackgroundTask) -> Self {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .unwrap();
        file.write_all_at(&header(task, 4_000_000), 0).unwrap();
        let hex = task.uid.replace('-', "");
        let address = SocketAddr::from_abstract_name(format!("heeler/{hex}")).unwrap();
        Self {
            file: Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap(),
            listener: UnixListener::bind_addr(&address).unwrap(),
        }
    }

    fn record(&self, at: usize, slot: &[u8]) {
        self.file.write_all_at(slot, at as u64).unwrap();
    }
}

/// A message: kind, version, six zeros and three words.
fn message(kind: u8, words: [u64; 3]) -> [u8; 32] {
    let mut message = [0; 32];
    message[..2].copy_from_slice(&[kind, 2]);
    for (slot, word) in message[8..].chunks_mut(8).zip(words) {
        slot.copy_from_slice(&word.to_le_bytes());
    }
    message
}

fn receive(link: &mut UnixStream) -> [u8; 32] {
    let mut message = [0; 32];
    link.read_exact(&mut message).unwrap();
    message
}

/// R8
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shim_of_version_2_is_connected_to_and_obeys_orders() {
    let (mut daemon, task) = without_task_file().await;
    let shim = OldShim::new(&daemon.task_file(&task.id), &task);
    let script = std::thread::spawn(move || {
        let (mut link, _) = shim.listener.accept().unwrap();
        link.write_all(&message(b'H', [4_000_000, 0, 0])).unwrap();
        link.write_all(&message(b'R', [0; 3])).unwrap();
        // A message of an unknown kind is skipped.
        link.write_all(&message(b'?', [1, 2, 3])).unwrap();
        assert_eq!(receive(&mut link), message(b's', [15, 0, 0]), "SIGTERM");
        link.write_all(&message(b'S', [15, 3, EXITED])).unwrap();
        assert_eq!(receive(&mut link), message(b'k', [10_000, 0, 0]), "a kill");
        shim.record(LEADER_EXIT, &exited(5, EXITED, 0));
        shim.record(TREE_END, &tree_end(GONE, 0));
        link.write_all(&message(b'L', [0; 3])).unwrap();
        link.write_all(&message(b'T', [0; 3])).unwrap();
    });
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&task.id).await.state(), TaskState::Running);
    let stopped = api.stop_within(&task.id, millis(20)).await;
    let cancelled = stopped.task.unwrap();
    assert_eq!(cancelled.state(), TaskState::Cancelled);
    assert_eq!(exit_code(&cancelled), 5);
    let signals = cancelled.stop.unwrap().signals;
    assert_eq!((signals[0].number, signals[0].processes), (15, Some(3)));
    script.join().unwrap();
}
