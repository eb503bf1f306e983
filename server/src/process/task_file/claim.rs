//! The state of a task's file by its lock, and the claim of a file that no shim has.
//!
//! A shim runs nothing unless it has created its task file, locked it, and found it empty after that. So
//! a server that creates the file first, or fills an empty one while it holds the lock, cancels the start.

use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use heeler_shim::log::BLOCKS_START;
use nix::fcntl::{Flock, FlockArg};

use super::{TaskDir, TaskFile, open_if_exists};
use crate::task::TaskId;

/// The object at the path of a task's file.
#[derive(Debug)]
pub(crate) enum FileState {
    /// A file that a live process, which is the shim, has locked.
    Locked(TaskFile),
    /// A file without a lock, which no shim will begin to use.
    Unlocked(TaskFile),
    /// Something that no shim creates, e.g. a directory.
    NotAFile,
}

impl TaskDir {
    /// Returns the state of a task's file, and creates the file if it does not exist.
    pub(crate) fn claim(&self, id: &TaskId) -> io::Result<FileState> {
        loop {
            if let Some(state) = self.file_state(id)? {
                return Ok(state);
            }
            let created = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(self.path(id));
            match created {
                Ok(file) => return Ok(FileState::Unlocked(self.task_file(id, file))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the state of a task's file; `None` if it does not exist.
    pub(crate) fn file_state(&self, id: &TaskId) -> io::Result<Option<FileState>> {
        state_of(&self.path(id), self.memory_path(id))
    }

    /// Returns the state of the file of a task's probe; `None` if it does not exist.
    pub(crate) fn probe_state(&self, id: &TaskId) -> io::Result<Option<FileState>> {
        state_of(&self.probe_path(id), None)
    }
}

fn state_of(path: &Path, memory: Option<PathBuf>) -> io::Result<Option<FileState>> {
    let file = match open_if_exists(path, 0) {
        Ok(Some(file)) => file,
        Ok(None) => return Ok(None),
        // A socket cannot be opened.
        Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => {
            return Ok(Some(FileState::NotAFile));
        }
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Ok(Some(FileState::NotAFile));
    }
    let state = match Flock::lock(file.try_clone()?, FlockArg::LockSharedNonblock) {
        Ok(lock) => {
            // A shim that has created the file and not locked it yet does not wait for the lock, and
            // checks after it that the file is empty.
            if file.metadata()?.len() == 0 {
                fill(path)?;
            }
            drop(lock);
            FileState::Unlocked(TaskFile { file, memory })
        }
        Err((_, nix::Error::EWOULDBLOCK)) => FileState::Locked(TaskFile { file, memory }),
        Err((_, error)) => return Err(error.into()),
    };
    Ok(Some(state))
}

fn fill(path: &Path) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .open(path)?
        .set_len(BLOCKS_START)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fs::{self, File};

    use super::*;

    fn dir() -> (tempfile::TempDir, TaskDir, TaskId) {
        let temp = tempfile::tempdir().unwrap();
        let dir = TaskDir::new(temp.path());
        dir.create().unwrap();
        (temp, dir, "shell-aaaaaaaaaa".parse().unwrap())
    }

    /// R3
    #[test]
    fn a_claimed_file_is_never_used_by_a_shim() {
        let (_temp, dir, id) = dir();
        assert!(matches!(dir.claim(&id), Ok(FileState::Unlocked(_))));
        assert!(matches!(dir.claim(&id), Ok(FileState::Unlocked(_))));
        // The check of a shim that created the file first: after its lock, the file is not empty.
        let file = File::open(dir.path(&id)).unwrap();
        assert_ne!(file.metadata().unwrap().len(), 0);
    }

    #[test]
    fn the_lock_of_a_file_decides_its_state() {
        let (_temp, dir, id) = dir();
        let file = File::create(dir.path(&id)).unwrap();
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).unwrap();
        assert!(matches!(
            dir.file_state(&id),
            Ok(Some(FileState::Locked(_)))
        ));
        drop(lock);
        assert!(matches!(
            dir.file_state(&id),
            Ok(Some(FileState::Unlocked(_)))
        ));
    }

    #[test]
    fn directories_and_fifos_are_not_task_files() {
        let (_temp, dir, id) = dir();
        fs::create_dir(dir.path(&id)).unwrap();
        assert!(matches!(dir.claim(&id), Ok(FileState::NotAFile)));
        let fifo: TaskId = "shell-aaaaaaaaab".parse().unwrap();
        let mode = nix::sys::stat::Mode::S_IRUSR;
        nix::unistd::mkfifo(&dir.path(&fifo), mode).unwrap();
        assert!(matches!(dir.claim(&fifo), Ok(FileState::NotAFile)));
    }
}
