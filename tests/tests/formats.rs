//! Task files and messages of shims of another build, as format version 1 has them. Everything here is
//! literal: see `heeler_tests::task_file` for the layout.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

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
    Daemon, eventually,
    task_file::{
        LEADER_EXIT, TREE_END, block, boot_id, exited, frame, identity, monotonic, running,
        shim_of, slot, tree_end, uuid, words,
    },
    v1::{outcome::Result as Ended, *},
};
use nix::{
    fcntl::{Flock, FlockArg},
    sys::signal::Signal::SIGKILL,
};

const STARTED: u64 = 1_700_000_000_000_000;
const EXITED: u64 = 1_700_000_001_000_000;
const GONE: u64 = 1_700_000_002_000_000;

/// A daemon that is down, with a live task whose processes and file are gone.
async fn bereft() -> (Daemon, BackgroundTask) {
    // The records below speak of no cgroup.
    let mut daemon = Daemon::builder().containment("subreaper").start().await;
    let fixture = daemon.run(&daemon.api().await, "forever").await;
    let leader = fixture.process("leader").await;
    let shim = shim_of(&leader);
    daemon.kill9();
    for process in [shim, leader] {
        process.signal(SIGKILL);
        eventually("a death", || !process.is_alive()).await;
    }
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
async fn the_records_and_the_output_of_a_task_file_of_version_1_are_read() {
    let (mut daemon, task) = bereft().await;
    let file = [
        header(&task, 4_000_000),
        exited(42, EXITED, 9),
        tree_end(GONE, 14),
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
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::ExitCode(42)));
    assert_eq!(ended.output_bytes, 14);
    assert_eq!(ended.end_time.unwrap().seconds, (GONE / 1_000_000) as i64);
    let read = api
        .read(heeler_tests::api::read(&task.id, 0))
        .await
        .unwrap();
    let chunks: Vec<_> = read
        .chunks
        .iter()
        .map(|chunk| (chunk.stream(), heeler_tests::api::raw(chunk)))
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
async fn an_exit_by_a_signal_and_a_failed_capture_of_version_1_are_read() {
    let (mut daemon, task) = bereft().await;
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
    assert_eq!(ended.outcome.unwrap().result, Some(Ended::Signal(signal)));
}

/// A shim as a server sees it: it has the file locked and answers on the socket.
struct LiteralShim {
    file: Flock<File>,
    listener: UnixListener,
}

impl LiteralShim {
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

/// A message: a kind, the version, six zeros, and three words.
fn message(kind: u8, words: [u64; 3]) -> [u8; 32] {
    let mut message = [0; 32];
    message[..2].copy_from_slice(&[kind, 1]);
    for (place, word) in message[8..].chunks_mut(8).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    message
}

fn hear(link: &mut UnixStream) -> [u8; 32] {
    let mut message = [0; 32];
    link.read_exact(&mut message).unwrap();
    message
}

/// R8
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_shim_of_protocol_version_1_is_connected_to_and_takes_orders() {
    let (mut daemon, task) = bereft().await;
    let shim = LiteralShim::new(&daemon.task_file(&task.id), &task);
    let script = std::thread::spawn(move || {
        let (mut link, _) = shim.listener.accept().unwrap();
        link.write_all(&message(b'H', [4_000_000, 0, 0])).unwrap();
        link.write_all(&message(b'R', [0; 3])).unwrap();
        // A message of an unknown kind is skipped.
        link.write_all(&message(b'?', [1, 2, 3])).unwrap();
        assert_eq!(hear(&mut link), message(b's', [15, 0, 0]), "SIGTERM");
        link.write_all(&message(b'S', [15, 3, EXITED])).unwrap();
        assert_eq!(hear(&mut link), message(b'k', [10_000, 0, 0]), "a kill");
        shim.record(LEADER_EXIT, &exited(5, EXITED, 0));
        shim.record(TREE_END, &tree_end(GONE, 0));
        link.write_all(&message(b'L', [0; 3])).unwrap();
        link.write_all(&message(b'T', [0; 3])).unwrap();
    });
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.task(&task.id).await.state(), TaskState::Running);
    let request = CancelRequest {
        grace: Some(heeler_tests::millis(20)),
        wait: true,
        ..heeler_tests::api::cancel(&task.id)
    };
    let cancelled = api.cancel_one(request).await.task.unwrap();
    assert_eq!(cancelled.state(), TaskState::Cancelled);
    assert_eq!(cancelled.outcome.unwrap().result, Some(Ended::ExitCode(5)));
    let signals = cancelled.stop.unwrap().signals;
    assert_eq!((signals[0].number, signals[0].processes), (15, 3));
    script.join().unwrap();
}
