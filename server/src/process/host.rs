//! The machine and this process's place on it.

pub(super) mod boot;
pub(super) mod clock;
pub(super) mod disk;
pub(super) mod lock;
pub(super) mod pidfd;
pub(super) mod schedule;
pub(super) mod signals;

use std::{fs, io};

use nix::{
    errno::Errno,
    sys::{
        resource::{Resource, getrlimit, setrlimit},
        signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction},
    },
};

/// Lets the kernel reap the shims. The server learns of a shim's end by its socket and its task file, so
/// it never waits for one.
pub(crate) fn ignore_child_signals() -> io::Result<()> {
    let ignore = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: an ignored signal runs no handler.
    unsafe { sigaction(Signal::SIGCHLD, &ignore) }?;
    Ok(())
}

/// Raises the soft limit of open descriptors to the hard one: each live task needs a descriptor. Returns
/// the old soft limit, which the tasks get.
pub(crate) fn raise_descriptor_limit() -> Option<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).ok()?;
    Some(soft)
}

/// The number of descriptors that this process may have open.
pub(crate) fn descriptor_limit() -> Option<u64> {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    Some(soft)
}

/// The number of descriptors that this process has open.
pub(crate) fn open_descriptors() -> io::Result<u64> {
    // The listing itself has one.
    let listed = fs::read_dir("/proc/self/fd")?.count() as u64;
    Ok(listed.saturating_sub(1))
}

/// Ends this process as `kill -9` does.
#[cfg(all(feature = "crash-points", debug_assertions))]
pub(crate) fn die_at_once() -> ! {
    let _ = nix::sys::signal::raise(Signal::SIGKILL);
    // Not reached: SIGKILL cannot be blocked.
    std::process::abort()
}

/// The effective user id of this process.
pub(crate) fn own_uid() -> u32 {
    nix::unistd::geteuid().as_raw()
}

/// Returns the system's text for an error number.
pub(crate) fn errno_text(errno: i32) -> &'static str {
    Errno::from_raw(errno).desc()
}

/// Returns the system's text for an error, without its number.
pub(crate) fn error_text(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(errno) => errno_text(errno).to_owned(),
        None => error.to_string(),
    }
}
