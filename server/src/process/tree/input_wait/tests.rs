//! Real waits for input: in threads of this process, and in a child whose shim this process is.

use std::{
    io::{PipeReader, PipeWriter, Write, pipe},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{fs::OpenOptionsExt, net::UnixStream},
    },
    process::{Command, Stdio},
    sync::mpsc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use nix::{
    fcntl::OFlag,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    pty::{posix_openpt, ptsname_r, unlockpt},
    sys::select::{FdSet, select},
    unistd::gettid,
};

use super::*;
use crate::process::shim::ShimProcess;

/// A thread that waits until its input has ended.
struct Waiter {
    thread: i32,
    handle: JoinHandle<()>,
}

impl Waiter {
    fn start(wait: impl FnOnce() + Send + 'static) -> Self {
        let (sender, started) = mpsc::channel();
        let handle = thread::spawn(move || {
            sender.send(gettid().as_raw()).unwrap();
            wait();
        });
        let thread = started.recv().unwrap();
        Self { thread, handle }
    }

    fn waits(&self, sources: &[Source]) -> bool {
        waits(own_pid(), self.thread, sources)
    }

    /// The call that the thread is in.
    fn call(&self) -> Option<Waiting> {
        let path = format!("/proc/self/task/{}/syscall", self.thread);
        Waiting::parse(&fs::read_to_string(path).unwrap())
    }
}

fn own_pid() -> i32 {
    std::process::id() as i32
}

/// A pipe, and its name as a source.
fn input() -> (PipeReader, PipeWriter, [Source; 1]) {
    let (reader, writer) = pipe().unwrap();
    let name = link(own_pid(), &writer.as_raw_fd().to_string()).unwrap();
    (reader, writer, [Source::Pipe(name)])
}

#[track_caller]
fn eventually(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "not in time");
        thread::yield_now();
    }
}

fn for_input<'a>(fds: &[BorrowedFd<'a>]) -> Vec<PollFd<'a>> {
    let entry = |fd: &BorrowedFd<'a>| PollFd::new(*fd, PollFlags::POLLIN);
    fds.iter().map(entry).collect()
}

#[test]
fn a_read_of_an_empty_pipe_waits_for_input() {
    let (reader, writer, sources) = input();
    let waiter = Waiter::start(move || {
        let _ = nix::unistd::read(&reader, &mut [0]);
    });
    eventually(|| waiter.waits(&sources));
    let (_reader, _writer, others) = input();
    assert!(!waiter.waits(&others), "another pipe");
    drop(writer);
    waiter.handle.join().unwrap();
}

#[test]
fn a_poll_or_select_of_nothing_but_the_input_waits_for_it() {
    let (reader, writer, sources) = input();
    let other = reader.try_clone().unwrap();
    let polls = Waiter::start(move || {
        let _ = poll(&mut for_input(&[reader.as_fd()]), PollTimeout::NONE);
    });
    let selects = Waiter::start(move || {
        let mut set = FdSet::new();
        set.insert(other.as_fd());
        let _ = select(None, &mut set, None, None, None);
    });
    // A descriptor above the limit of a call that is read is not looked at.
    let is_small = |waiter: &Waiter| matches!(waiter.call(), Some(Waiting::InMemory(_)));
    eventually(|| polls.waits(&sources));
    eventually(|| selects.waits(&sources) || !is_small(&selects));
    drop(writer);
    polls.handle.join().unwrap();
    selects.handle.join().unwrap();
}

#[test]
fn a_poll_of_the_input_and_a_socket_does_not_wait_for_input() {
    let (reader, writer, sources) = input();
    let (socket, _peer) = UnixStream::pair().unwrap();
    let waiter = Waiter::start(move || {
        let mut fds = for_input(&[reader.as_fd(), socket.as_fd()]);
        let _ = poll(&mut fds, PollTimeout::NONE);
    });
    eventually(|| matches!(waiter.call(), Some(Waiting::InMemory(_))));
    assert!(!waiter.waits(&sources));
    drop(writer);
    waiter.handle.join().unwrap();
}

/// An epoll descriptor that watches these for input.
fn epoll(fds: &[BorrowedFd<'_>]) -> OwnedFd {
    use std::os::fd::FromRawFd;
    // SAFETY: the call takes an integer, and the descriptor is new.
    let epoll = unsafe { OwnedFd::from_raw_fd(libc::epoll_create1(libc::EPOLL_CLOEXEC)) };
    for fd in fds {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: 0,
        };
        let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
        // SAFETY: the event lives as long as the call.
        let done = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
        assert_eq!(done, 0);
    }
    epoll
}

fn wait_on(epoll: &OwnedFd) {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: there is room for one event.
    unsafe { libc::epoll_wait(epoll.as_raw_fd(), &raw mut event, 1, -1) };
}

#[test]
fn an_event_loop_without_a_socket_waits_for_input_and_a_server_does_not() {
    let (reader, writer, sources) = input();
    let (socket, _peer) = UnixStream::pair().unwrap();
    let (wake, _waker, _) = input();
    let (alone, server) = (
        epoll(&[reader.as_fd(), wake.as_fd()]),
        epoll(&[reader.as_fd(), socket.as_fd()]),
    );
    let alone = Waiter::start(move || wait_on(&alone));
    let server = Waiter::start(move || wait_on(&server));
    eventually(|| alone.waits(&sources));
    eventually(|| matches!(server.call(), Some(Waiting::OnEpoll(_))));
    assert!(!server.waits(&sources));
    drop(writer);
    alone.handle.join().unwrap();
    server.handle.join().unwrap();
}

/// The tree of this process, as that of a shim.
fn own_tree() -> TreeRoot {
    let start_ticks = super::super::start_ticks(own_pid()).unwrap();
    TreeRoot {
        shim: Some(ShimProcess {
            pid: own_pid(),
            start_ticks,
        }),
        cgroup: None,
    }
}

/// Starts `cat`, and waits until it waits for input, by its call and by the function that it sleeps in.
fn assert_cat_waits(stdin: Stdio, source: &Source) {
    let mut command = Command::new("cat");
    command.stdin(stdin).stdout(Stdio::null());
    let mut child = command.spawn().unwrap();
    drop(command);
    let (pid, sources) = (child.id() as i32, sources(own_pid()));
    assert!(sources.contains(source), "{source:?} is not in {sources:?}");
    eventually(|| waits(pid, pid, &sources));
    eventually(|| sleeps(pid, pid, &sources));
    eventually(|| is_input_awaited(&own_tree()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!waits(pid, pid, &sources), "it has ended");
}

#[test]
fn a_child_waits_for_input_from_the_pipe_of_its_shim() {
    let (reader, mut writer, [source]) = input();
    assert_cat_waits(OwnedFd::from(reader).into(), &source);
    assert!(writer.write_all(b"x").is_err(), "no reader is left");
}

#[test]
fn a_child_waits_for_input_from_the_terminal_of_its_shim() {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname_r(&master).unwrap();
    let mut options = fs::OpenOptions::new();
    let slave = options.read(true).write(true).custom_flags(libc::O_NOCTTY);
    let slave = slave.open(&name).unwrap();
    assert_cat_waits(slave.into(), &Source::Terminal(name));
}
