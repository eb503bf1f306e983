//! The socket of a daemon that runs: its file is removed, or a client connects too often.

use std::{fs, io::Read, os::unix::fs::MetadataExt, os::unix::net::UnixStream, time::Duration};

use heeler_tests::{Api, Daemon, eventually, process::Process};
use nix::sys::{
    resource::{Resource, getrlimit, setrlimit},
    signal::Signal,
};

use crate::all_is_served;

/// Half of the 4,096 connections that the daemon accepts.
const SHARE: usize = 2048;

/// The daemon listens at its path again.
async fn listens_again(daemon: &Daemon) {
    let socket = daemon.socket();
    eventually("the socket", || UnixStream::connect(&socket).is_ok()).await;
    let mode = |path| fs::metadata(path).unwrap().mode() & 0o7777;
    assert_eq!(mode(&*socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    Api::connect(&daemon.address())
        .await
        .unwrap()
        .server()
        .await;
}

/// N1, N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_socket_that_is_removed_is_bound_again() {
    let daemon = Daemon::start().await;
    let before = daemon.api().await;
    let socket = daemon.socket();
    let task = before.start(daemon.script("forever")).await;
    fs::remove_file(&socket).unwrap();
    listens_again(&daemon).await;
    fs::remove_dir_all(socket.parent().unwrap()).unwrap();
    listens_again(&daemon).await;
    fs::rename(&socket, daemon.path("moved.sock")).unwrap();
    listens_again(&daemon).await;
    fs::rename(socket.parent().unwrap(), daemon.path("moved")).unwrap();
    listens_again(&daemon).await;
    // A connection that was open all along still works, and a client of its own stops the task.
    assert_eq!(before.task(&task.id).await.id, task.id);
    let cancelled = daemon.heeler(["cancel", "--force", &task.id]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    for left in ["moved", "moved.sock"] {
        let path = daemon.path(left);
        let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
    }
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directory_of_the_socket_may_come_back_later() {
    let daemon = Daemon::start().await;
    let run = daemon.path("run");
    // A file in the place of the directory: nothing can be bound there.
    fs::rename(&run, daemon.path("away")).unwrap();
    fs::write(&run, "").unwrap();
    daemon.logged("cannot bind the socket").await;
    fs::remove_file(&run).unwrap();
    listens_again(&daemon).await;
    fs::remove_dir_all(daemon.path("away")).unwrap();
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_daemon_that_has_the_state_directory_is_named_with_its_pid() {
    let daemon = Daemon::start().await;
    let elsewhere = format!("unix:{}", daemon.file("elsewhere.sock"));
    let refused = daemon
        .refused_start(&daemon.state_dir(), &["--listen", &elsewhere])
        .await;
    let pid = format!("pid {}", daemon.pid());
    assert!(refused.contains(&pid), "{refused}");

    // The daemon of this user, at an address where no command looks for it.
    let mut other = daemon
        .cli(["serve", "--listen", &elsewhere])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let pid = other.id().unwrap();
    let socket = daemon.path("elsewhere.sock");
    eventually("it listens", || UnixStream::connect(&socket).is_ok()).await;
    // The daemon at the usual address is another one.
    let stopped = Process::now(daemon.pid()).unwrap();
    stopped.signal(Signal::SIGSTOP);
    fs::rename(daemon.path("run"), daemon.path("away")).unwrap();
    let found = daemon.heeler(["ps"]).await;
    stopped.signal(Signal::SIGCONT);
    let _ = other.kill().await;
    assert_eq!(found.code, Some(4), "{found:?}");
    assert!(found.stderr.contains(&format!("pid {pid}")), "{found:?}");
    fs::remove_dir_all(daemon.path("away")).unwrap();
    listens_again(&daemon).await;
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_client_leave_room_for_others() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
    let daemon = Daemon::start().await;
    let mut connections = Vec::new();
    let mut closed = 0;
    for _ in 0..SHARE + 100 {
        let connection = UnixStream::connect(daemon.socket()).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        connections.push(connection);
    }
    // The server sends its settings at once, unless it closes the connection.
    for connection in &mut connections {
        closed += usize::from(connection.read(&mut [0]).unwrap() == 0);
    }
    assert!((100..200).contains(&closed), "{closed} were closed");
    all_is_served(&daemon).await;
    drop(connections);
}
