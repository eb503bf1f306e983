//! The operating system: how a tree is started, held together, looked at and ended.
//!
//! The only part of the server with `nix` or `unsafe`. It knows processes, descriptors and files;
//! it decides nothing: who is to be stopped, and when, is the supervisor's business.
//!
//! | module | holds |
//! | --- | --- |
//! | [`boot`] | which boot of the machine this is |
//! | [`containment`] | the kill ladder: which rung this machine offers |
//! | [`environment`] | the variables that a task is started with |
//! | [`program`] | which file a command means |
//! | [`shim`] | the per-task process: starting one |
//! | [`link`] | talking to one |
//! | [`task_file`] | what one leaves behind: records and output |
//! | [`tree`] | the processes below one, and what they use |
//! | [`socket`] | where clients come in |
//! | [`sweep`] | finding a task's processes when its shim is gone |

#![allow(unsafe_code)]

pub mod boot;
pub mod containment;
pub mod disk;
pub mod environment;
pub mod link;
pub mod program;
pub mod shim;
pub mod socket;
pub mod sweep;
pub mod task_file;
pub mod tree;

use std::{
    io,
    os::fd::AsFd,
    path::Path,
    time::{Duration, Instant},
};

use nix::{
    fcntl::{Flock, FlockArg},
    sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
};

/// Lets the kernel reap the shims: their end is known by their socket and their task file, so that
/// nobody needs to wait for them.
pub fn leave_reaping_to_the_kernel() -> io::Result<()> {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { sigaction(Signal::SIGCHLD, &ignore) }?;
    Ok(())
}

/// One descriptor for each live task is needed; the soft limit is often far below the hard one.
/// Returns what it was, for the tasks to have.
pub fn raise_descriptor_limit() -> Option<u64> {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some(soft)
}

/// A lock that names this process as the only server of a state directory; held until dropped.
#[derive(Debug)]
pub struct StateLock(#[allow(dead_code, reason = "held, never read")] Flock<std::fs::File>);

/// How long a lock may outlive its server. A shim that was being started has the descriptor too, until
/// it executes its program: a moment, or several on a machine that is busy.
const LOCK_OUTLIVES: Duration = Duration::from_secs(1);
/// How long to wait between two attempts.
const LOCK_STEP: Duration = Duration::from_millis(5);

impl StateLock {
    /// Takes the lock; `None` if another process has it and keeps it, or serves. Blocks meanwhile.
    pub fn take(path: &Path, is_served: impl Fn() -> bool) -> io::Result<Option<Self>> {
        let end = Instant::now() + LOCK_OUTLIVES;
        loop {
            let lock = Self::try_take(path)?;
            if lock.is_some() || Instant::now() >= end || is_served() {
                return Ok(lock);
            }
            std::thread::sleep(LOCK_STEP);
        }
    }

    fn try_take(path: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::fs::OpenOptionsExt;
        let file = std::fs::OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(path)?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => Ok(Some(Self(lock))),
            Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error.into()),
        }
    }
}

/// Ends this process as `kill -9` does.
#[cfg(all(feature = "crash-points", debug_assertions))]
pub(crate) fn die_at_once() -> ! {
    // It does not return.
    let _ = nix::sys::signal::raise(Signal::SIGKILL);
    std::process::abort()
}

/// The name of a signal, e.g. `SIGTERM`.
pub fn signal_name(number: i32) -> String {
    match Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_owned(),
        Err(_) => format!("SIG{number}"),
    }
}

/// The signal of this name, with or without `SIG`, or of this number.
pub fn signal_number(text: &str) -> Option<i32> {
    if let Ok(number) = text.parse::<i32>() {
        return Signal::try_from(number).ok().map(|signal| signal as i32);
    }
    let upper = text.to_ascii_uppercase();
    let full = if upper.starts_with("SIG") {
        upper
    } else {
        format!("SIG{upper}")
    };
    full.parse::<Signal>().ok().map(|signal| signal as i32)
}

/// This process's user.
pub fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// The words for a system error number.
pub fn errno_text(errno: i32) -> &'static str {
    nix::errno::Errno::from_raw(errno).desc()
}

/// The system's words for an error, without its number.
pub fn error_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => errno_text(errno).to_owned(),
        None => error.to_string(),
    }
}

/// A descriptor that names a process for as long as it is open, however its number is reused.
pub(crate) fn pidfd_open(pid: i32) -> io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::{FromRawFd, OwnedFd, RawFd};
    // SAFETY: a system call with two integers; it touches no memory.
    let fd = unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just made this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Signals the process that the descriptor names.
pub(crate) fn pidfd_signal(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let fd = pidfd.as_fd().as_raw_fd();
    let info = std::ptr::null::<nix::libc::siginfo_t>();
    // SAFETY: a null siginfo asks the kernel for that of kill(2); nothing else is a pointer.
    let done =
        unsafe { nix::libc::syscall(nix::libc::SYS_pidfd_send_signal, fd, signal as i32, info, 0) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_known_by_name_and_number() {
        for text in ["SIGINT", "INT", "int", "2"] {
            assert_eq!(signal_number(text), Some(2), "{text}");
        }
        for text in ["", "SIG", "SIGNOPE", "0", "-1", "99999", "SIGSIGINT"] {
            assert_eq!(signal_number(text), None, "{text}");
        }
        assert_eq!(signal_name(15), "SIGTERM");
        assert_eq!(signal_name(40), "SIG40");
    }

    #[test]
    fn a_state_directory_has_one_lock() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let first = StateLock::take(&path, || false).expect("lockable");
        assert!(first.is_some());
        assert!(
            StateLock::take(&path, || false)
                .expect("lockable")
                .is_none()
        );
        drop(first);
        assert!(
            StateLock::take(&path, || false)
                .expect("lockable")
                .is_some()
        );
    }

    /// R1
    #[test]
    fn a_lock_that_outlives_its_server_for_a_moment_is_waited_for() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("lock");
        let first = StateLock::take(&path, || false)
            .expect("lockable")
            .expect("free");
        let holder = std::thread::spawn(move || {
            std::thread::sleep(LOCK_STEP * 20);
            drop(first);
        });
        assert!(
            StateLock::take(&path, || false)
                .expect("lockable")
                .is_some()
        );
        holder.join().expect("it lets go");
    }
}
