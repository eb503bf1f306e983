//! The place where a task's file is, or should be: who has it, and taking it where nobody does.
//!
//! A shim runs nothing unless it has made its task file, locked it, and found it still empty after
//! that. So whoever makes the file first, or fills an empty one under its lock, has undone the start.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use heeler_shim::log::BLOCKS_START;
use nix::fcntl::{Flock, FlockArg};

use super::{TaskDir, TaskFile, open_if_there};
use crate::{strays, task::TaskId};

/// What is where a task's file should be.
#[derive(Debug)]
pub enum Place {
    /// A file that a living process has locked.
    Held(TaskFile),
    /// A file that nobody has locked, and no shim will begin to use.
    Free(TaskFile),
    /// Something that no shim makes, e.g. a directory.
    Occupied,
}

/// What was found among the task files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The file of a task, by its name.
    Task(TaskId),
    /// Something else.
    Other(PathBuf),
}

impl TaskDir {
    /// Looks at a task's place, and takes it if it is empty.
    pub fn claim(&self, id: &TaskId) -> io::Result<Place> {
        loop {
            if let Some(place) = self.look(id)? {
                return Ok(place);
            }
            let made = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(self.path(id));
            match made {
                Ok(file) => return Ok(Place::Free(self.task_file(id, file))),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Looks at a task's place; `None` if there is nothing.
    pub fn look(&self, id: &TaskId) -> io::Result<Option<Place>> {
        let file = match self.open(id) {
            Ok(Some(TaskFile { file, .. })) => file,
            Ok(None) => return Ok(None),
            // A socket: it cannot be opened at all.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENXIO) => {
                return Ok(Some(Place::Occupied));
            }
            Err(error) => return Err(error),
        };
        if !file.metadata()?.is_file() {
            return Ok(Some(Place::Occupied));
        }
        let place = match Flock::lock(file.try_clone()?, FlockArg::LockSharedNonblock) {
            Ok(lock) => {
                // A shim that has made the file and not yet locked it waits for nobody, and sees
                // after its lock that the file was touched.
                if file.metadata()?.len() == 0 {
                    fill(&self.path(id))?;
                }
                drop(lock);
                Place::Free(self.task_file(id, file))
            }
            Err((_, nix::Error::EWOULDBLOCK)) => Place::Held(self.task_file(id, file)),
            Err((_, error)) => return Err(error.into()),
        };
        Ok(Some(place))
    }

    /// Everything that is among the task files now.
    pub fn found(&self) -> io::Result<Vec<Found>> {
        let mut found = Vec::new();
        for part in fs::read_dir(&self.path)? {
            let part = part?.path();
            if !part.is_dir() {
                found.push(Found::Other(part));
                continue;
            }
            for entry in fs::read_dir(part)? {
                let entry = entry?;
                let id = entry
                    .file_name()
                    .to_str()
                    .and_then(|name| name.parse().ok());
                found.push(match id {
                    Some(id) if self.path(&id) == entry.path() => Found::Task(id),
                    Some(_) | None => Found::Other(entry.path()),
                });
            }
        }
        Ok(found)
    }

    /// Where a file with this name is, if one was ever set aside.
    pub fn stray(&self, id: &TaskId) -> PathBuf {
        strays::directory(self.state_dir()).join(id.as_str())
    }

    /// Moves a file that belongs to no task out of the way, with its output, and says where it is now.
    pub fn set_aside(&self, id: &TaskId) -> io::Result<PathBuf> {
        self.spill(id)?;
        let to = strays::unused_path(self.state_dir(), id.as_str())?;
        fs::rename(self.path(id), &to)?;
        Ok(to)
    }

    /// Whether a task's file, here or set aside, says that some of its processes were let go.
    pub fn has_abandoned(&self, id: &TaskId) -> bool {
        let places = [self.path(id), self.stray(id)];
        places.iter().any(|path| {
            let file = open_if_there(path, 0).ok().flatten();
            let records = file.and_then(|file| self.task_file(id, file).records().ok());
            let end = records.and_then(|records| records.tree_end.whole());
            end.is_some_and(|end| end.abandoned)
        })
    }

    fn state_dir(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }
}

/// Makes an empty file one that was touched.
fn fill(path: &Path) -> io::Result<()> {
    let file: File = OpenOptions::new().write(true).open(path)?;
    file.set_len(BLOCKS_START)
}

#[cfg(test)]
mod tests {
    use heeler_shim::record::{TreeEnd, position};

    use super::*;

    fn dir() -> (tempfile::TempDir, TaskDir, TaskId) {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = TaskDir::new(temp.path());
        dir.create().expect("room");
        (temp, dir, "shell-aaaaaaaaaa".parse().expect("an id"))
    }

    /// R3
    #[test]
    fn a_place_that_was_claimed_is_never_a_shims_again() {
        let (_temp, dir, id) = dir();
        assert!(matches!(dir.claim(&id), Ok(Place::Free(_))));
        assert!(matches!(dir.claim(&id), Ok(Place::Free(_))), "twice over");
        // As a shim does it, which had made the file before we came: lock it, and look whether it
        // is still empty.
        let file = File::open(dir.path(&id)).expect("it is there");
        assert_ne!(file.metadata().expect("readable").len(), 0);
    }

    #[test]
    fn a_locked_file_is_held() {
        let (_temp, dir, id) = dir();
        let file = File::create(dir.path(&id)).expect("room");
        let lock = Flock::lock(file, FlockArg::LockExclusiveNonblock).expect("free");
        assert!(matches!(dir.look(&id), Ok(Some(Place::Held(_)))));
        drop(lock);
        assert!(matches!(dir.look(&id), Ok(Some(Place::Free(_)))));
    }

    #[test]
    fn what_is_no_file_is_told_from_one() {
        let (_temp, dir, id) = dir();
        fs::create_dir(dir.path(&id)).expect("room");
        assert!(matches!(dir.claim(&id), Ok(Place::Occupied)));
        let fifo: TaskId = "shell-aaaaaaaaab".parse().expect("an id");
        let mode = nix::sys::stat::Mode::S_IRUSR;
        nix::unistd::mkfifo(&dir.path(&fifo), mode).expect("room");
        assert!(matches!(dir.claim(&fifo), Ok(Place::Occupied)));
    }

    /// F11
    #[test]
    fn whom_a_stray_has_abandoned_is_known() {
        let (_temp, dir, id) = dir();
        let end = |abandoned| TreeEnd {
            time_micros: 1,
            output_end: 0,
            cgroup_empty: false,
            cpu_micros: 0,
            max_memory: 0,
            capture_errno: 0,
            discarded: 0,
            abandoned,
        };
        for abandoned in [false, true] {
            let mut file = vec![0; position::TREE_END as usize];
            file.extend(end(abandoned).encode());
            fs::write(dir.path(&id), file).expect("room");
            assert_eq!(dir.has_abandoned(&id), abandoned);
        }
        dir.set_aside(&id).expect("room");
        assert!(dir.has_abandoned(&id));
    }

    #[test]
    fn a_stray_is_kept_under_a_name_of_its_own() {
        let (temp, dir, id) = dir();
        for name in ["shell-aaaaaaaaaa", "shell-aaaaaaaaaa.2"] {
            fs::write(dir.path(&id), name).expect("room");
            assert_eq!(dir.found().expect("readable"), [Found::Task(id.clone())]);
            let to = dir.set_aside(&id).expect("room");
            assert_eq!(to, temp.path().join("strays").join(name));
            assert_eq!(fs::read_to_string(to).expect("there"), name);
        }
    }
}
