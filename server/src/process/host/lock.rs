//! The lock of a state directory.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::Path,
    time::{Duration, Instant},
};

use nix::fcntl::{Flock, FlockArg};

/// The time that a lock may outlive its server: a shim that is being started has the descriptor too,
/// until it executes its program, which can take a while on a busy machine.
const LOCK_OUTLIVES: Duration = Duration::from_secs(1);
const RETRY: Duration = Duration::from_millis(5);

/// The file with the pid of the server that has the lock. It is not what is locked.
const HOLDER: &str = "lock";

/// A lock that makes this process the only server of a state directory, until it is dropped.
///
/// The lock is that of the directory itself: no file in it can be removed to let another server in.
#[derive(Debug)]
pub(crate) struct StateLock(#[allow(dead_code, reason = "kept for its drop")] Flock<File>);

impl StateLock {
    /// Takes the lock of a directory; `None` if another process keeps it, or `is_served` returns true.
    /// Blocks for up to [`LOCK_OUTLIVES`].
    pub(crate) fn take(dir: &Path, is_served: impl Fn() -> bool) -> io::Result<Option<Self>> {
        let end = Instant::now() + LOCK_OUTLIVES;
        loop {
            let lock = Self::try_take(dir)?;
            if lock.is_some() || Instant::now() >= end || is_served() {
                return Ok(lock);
            }
            std::thread::sleep(RETRY);
        }
    }

    /// The pid of the server that has the lock, as it wrote it.
    pub(crate) fn holder(dir: &Path) -> Option<u32> {
        let named = fs::read_to_string(dir.join(HOLDER)).ok()?;
        named.trim().parse().ok()
    }

    fn try_take(dir: &Path) -> io::Result<Option<Self>> {
        match Flock::lock(File::open(dir)?, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => {
                name_holder(dir);
                Ok(Some(Self(lock)))
            }
            Err((_, nix::Error::EWOULDBLOCK)) => Ok(None),
            Err((_, error)) => Err(error.into()),
        }
    }
}

/// Writes the pid into a file, for people. The lock holds without it, for example on a full disk.
fn name_holder(dir: &Path) {
    let file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        // Something else may be in its place, and must not block the server.
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(dir.join(HOLDER));
    let _ = file.and_then(|mut file| writeln!(file, "{}", std::process::id()));
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// R6
    #[test]
    fn a_state_directory_has_one_lock() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateLock::take(dir.path(), || false).unwrap();
        assert!(first.is_some());
        assert!(StateLock::take(dir.path(), || false).unwrap().is_none());
        assert_eq!(StateLock::holder(dir.path()), Some(std::process::id()));
        drop(first);
        assert!(StateLock::take(dir.path(), || false).unwrap().is_some());
    }

    /// R1
    #[test]
    fn a_lock_that_briefly_outlives_its_server_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let first = StateLock::take(dir.path(), || false).unwrap().unwrap();
        let owner = std::thread::spawn(move || {
            std::thread::sleep(RETRY * 20);
            drop(first);
        });
        assert!(StateLock::take(dir.path(), || false).unwrap().is_some());
        owner.join().unwrap();
    }
}
