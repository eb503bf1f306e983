//! Input that a process waits for.
//!
//! The shim holds the writing end of a task's stdin, or the master of its terminal. A process of the tree
//! waits for input if one of its threads is in a system call that waits for nothing but the other end.
//! The kernel tells the call and its arguments only to a process that may trace the other; where it does
//! not, the function that the thread sleeps in has to do.

mod call;

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
};

use super::{TreeRoot, procfs::threads};
use call::Waiting;

/// The most threads of a process that are looked at.
const MOST_THREADS: usize = 256;
/// The kernel's functions in which a read of an empty pipe sleeps, by its version.
const PIPE_SLEEPS: [&str; 3] = ["anon_pipe_read", "pipe_read", "pipe_wait"];
/// The same for a terminal. Sockets sleep in the first one, too.
const TERMINAL_SLEEPS: [&str; 2] = ["wait_woken", "n_tty_read"];

/// A place that a task's input comes from, by its name in `/proc/<pid>/fd`.
#[derive(Debug, PartialEq, Eq)]
enum Source {
    Pipe(String),
    Terminal(String),
}

/// Returns whether a process of the tree waits for input that only its shim can give.
pub(crate) fn is_input_awaited(root: &TreeRoot) -> bool {
    let Some(shim) = root.shim else {
        return false;
    };
    let sources = sources(shim.pid);
    // Most tasks have no input at all.
    !sources.is_empty()
        && root.processes().into_iter().any(|(pid, _)| {
            let mut threads = threads(pid).take(MOST_THREADS);
            threads.any(|thread| waits(pid, thread, &sources))
        })
}

/// The sources whose other end a shim has open.
fn sources(shim_pid: i32) -> Vec<Source> {
    let fds = fs::read_dir(format!("/proc/{shim_pid}/fd"));
    let fds = fds.into_iter().flatten().flatten();
    let source = |fd: String| {
        let link = link(shim_pid, &fd)?;
        let info = fs::read_to_string(format!("/proc/{shim_pid}/fdinfo/{fd}")).ok()?;
        match link.as_str() {
            "/dev/ptmx" | "/dev/pts/ptmx" => {
                let index = field(&info, "tty-index:")?;
                Some(Source::Terminal(format!("/dev/pts/{index}")))
            }
            pipe if pipe.starts_with("pipe:") => {
                let flags = u32::from_str_radix(field(&info, "flags:")?, 8).ok()?;
                let mode = flags as i32 & nix::libc::O_ACCMODE;
                (mode == nix::libc::O_WRONLY).then_some(Source::Pipe(link))
            }
            _ => None,
        }
    };
    fds.filter_map(|fd| source(fd.file_name().into_string().ok()?))
        .collect()
}

/// Returns the value of a field in `/proc/<pid>/fdinfo`.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim())
}

fn waits(pid: i32, thread: i32, sources: &[Source]) -> bool {
    let kind = |fd: i32| Descriptor::of(pid, fd, sources);
    match fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall")) {
        Ok(text) => match Waiting::parse(&text) {
            Some(Waiting::On(fd)) => kind(fd) == Descriptor::Source,
            Some(Waiting::InMemory(set)) => {
                let fds = memory(pid, set.address, set.len).map(|bytes| set.descriptors(&bytes));
                let fds = fds.unwrap_or_default();
                !fds.is_empty() && fds.into_iter().all(|fd| kind(fd) == Descriptor::Source)
            }
            Some(Waiting::OnEpoll(epoll)) => {
                let kinds: Vec<_> = registered(pid, epoll).into_iter().map(kind).collect();
                // Event loops wake themselves through pipes and the like; a server waits for sockets.
                kinds.contains(&Descriptor::Source) && !kinds.contains(&Descriptor::Socket)
            }
            None => false,
        },
        Err(_) => sleeps(pid, thread, sources),
    }
}

/// Returns whether a thread seems to sleep in a read of stdin.
fn sleeps(pid: i32, thread: i32, sources: &[Source]) -> bool {
    let function = fs::read_to_string(format!("/proc/{pid}/task/{thread}/wchan"));
    let function = function.unwrap_or_default();
    let Some(stdin) = link(pid, "0") else {
        return false;
    };
    sources.iter().any(|source| match source {
        Source::Pipe(name) => *name == stdin && PIPE_SLEEPS.contains(&&*function),
        Source::Terminal(name) => {
            *name == stdin && TERMINAL_SLEEPS.contains(&&*function) && !has_sockets(pid)
        }
    })
}

fn has_sockets(pid: i32) -> bool {
    let fds = fs::read_dir(format!("/proc/{pid}/fd"));
    let mut fds = fds.into_iter().flatten().flatten();
    fds.any(|fd| {
        fs::read_link(fd.path()).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    })
}

/// The role of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Descriptor {
    Source,
    Socket,
    Other,
}

impl Descriptor {
    fn of(pid: i32, fd: i32, sources: &[Source]) -> Self {
        let Some(link) = link(pid, &fd.to_string()) else {
            return Self::Other;
        };
        let is_it = |source: &Source| match source {
            Source::Pipe(name) => *name == link,
            // The name by which a process opens the terminal that controls it.
            Source::Terminal(name) => *name == link || link == "/dev/tty",
        };
        match sources.iter().any(is_it) {
            true => Self::Source,
            false if link.starts_with("socket:") => Self::Socket,
            false => Self::Other,
        }
    }
}

/// The descriptors that an epoll descriptor watches for input.
fn registered(pid: i32, epoll: i32) -> Vec<i32> {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}"));
    call::registered(&info.unwrap_or_default())
}

fn link(pid: i32, fd: &str) -> Option<String> {
    let link = fs::read_link(format!("/proc/{pid}/fd/{fd}")).ok()?;
    link.into_os_string().into_string().ok()
}

/// Reads the memory of a process.
fn memory(pid: i32, address: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    let memory = File::open(format!("/proc/{pid}/mem")).ok()?;
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
