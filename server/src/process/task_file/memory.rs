//! Memory files: the output of foreground tasks on tmpfs.
//!
//! A foreground task's output begins in a file with the task's name, in a private directory on a file
//! system without a disk. The shim writes it. It exists until the shim moves it to the task file, the
//! task is removed, its output is evicted, or the machine is rebooted. If it exists, it is the task's
//! output, else the task file is (see [`heeler_shim::memory_file`]).
//!
//! ```text
//! /dev/shm/heeler-<directory id>/   0700, created when first needed, locked (shared) by its server
//!     state-dir -> /path/of/state   so that a directory without a state directory can be removed
//!     shell-aaaaaaaaaa              one per task; locked (exclusive) by its shim while it writes
//! ```

mod budget;
mod claimed;
mod stale;
mod tasks;

use std::{
    fs, io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use nix::sys::statfs::{Statfs, TMPFS_MAGIC, statfs};
use uuid::Uuid;

use budget::{Budget, Share};
use claimed::ClaimedDir;

use crate::{process::own_uid, task::TaskId};

/// The directory of a tmpfs on any Linux.
const SHARED_MEMORY: &str = "/dev/shm";
/// The prefix of a memory directory's name; the id of its state directory follows.
const PREFIX: &str = "heeler-";
/// `RAMFS_MAGIC` of the kernel's `magic.h`.
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// At most one part in this many of the file system is used: it is shared, and may be small in a
/// container.
const FILE_SYSTEM_SHARE: u64 = 2;

/// The directory of memory files, and the budget for them.
#[derive(Debug)]
pub struct MemoryDir {
    path: PathBuf,
    state_dir: PathBuf,
    limit: u64,
    budget: Mutex<Budget>,
    /// Set while the directory exists and is locked.
    claimed: Mutex<Option<ClaimedDir>>,
}

/// The reason why output cannot begin in memory.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    #[error("{} is not on a file system in memory", .0.display())]
    NotInMemory(PathBuf),
    /// Other users could read or replace its files.
    #[error("{} is not a directory of this user", .0.display())]
    NotOurs(PathBuf),
    #[error("cannot use {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

impl MemoryDir {
    /// The path of a state directory's memory directory, in `within` or in the system's tmpfs.
    pub fn of(directory_id: Uuid, within: Option<&Path>) -> PathBuf {
        let within = within.unwrap_or(Path::new(SHARED_MEMORY));
        within.join(format!("{PREFIX}{}", directory_id.simple()))
    }

    /// Opens the memory directory of a state directory, for at most `limit` bytes of all tasks together.
    /// Existing files count. It is created when it is first needed.
    pub fn open(path: &Path, state_dir: &Path, limit: u64) -> Result<Self, MemoryError> {
        let failed = |source| MemoryError::Io {
            path: path.to_owned(),
            source,
        };
        let state_dir = fs::canonicalize(state_dir).map_err(failed)?;
        let mut budget = Budget::default();
        let exists = match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        let mut claimed = None;
        let file_system = match (exists, path.parent()) {
            (true, _) => {
                check(path)?;
                let file_system = in_memory(path)?;
                claimed = Some(ClaimedDir::claim(path, &state_dir).map_err(failed)?);
                for (id, bytes) in files(path).map_err(failed)? {
                    budget.set(id, Some(Share::Settled(bytes)));
                }
                file_system
            }
            (false, Some(parent)) => in_memory(parent)?,
            (false, None) => return Err(MemoryError::NotOurs(path.to_owned())),
        };
        Ok(Self {
            path: path.to_owned(),
            state_dir,
            limit: limit.min(size(&file_system) / FILE_SYSTEM_SHARE),
            budget: Mutex::new(budget),
            claimed: Mutex::new(claimed),
        })
    }

    /// The path of a task's memory file.
    pub(super) fn path(&self, id: &TaskId) -> PathBuf {
        self.path.join(id.as_str())
    }

    /// Returns whether the files in the directory can be trusted. Another user who knows its name could
    /// have created it first. In a sticky directory, only this user can replace one that is ours.
    fn is_ours(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|found| found.is_dir() && found.uid() == own_uid())
    }

    /// Creates the directory if necessary, and checks that it can be trusted.
    fn ensure(&self) -> Result<(), MemoryError> {
        let mut claimed = self.claimed();
        if claimed.as_ref().is_some_and(|dir| dir.is_at(&self.path)) {
            return check(&self.path);
        }
        let dir = ClaimedDir::claim(&self.path, &self.state_dir);
        match dir {
            Ok(dir) => *claimed = Some(dir),
            Err(source) => {
                // A more telling reason, if there is one.
                check(&self.path)?;
                return Err(MemoryError::Io {
                    path: self.path.clone(),
                    source,
                });
            }
        }
        check(&self.path)?;
        in_memory(&self.path).map(drop)
    }

    /// Deletes a task's memory file, if it exists, and gives its bytes back to the budget. Returns their
    /// number.
    fn remove(&self, id: &TaskId) -> io::Result<u64> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        Ok(self.budget().set(id.clone(), None))
    }

    fn budget(&self) -> MutexGuard<'_, Budget> {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn claimed(&self) -> MutexGuard<'_, Option<ClaimedDir>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that the path is a directory of this user, and makes it private.
fn check(path: &Path) -> Result<(), MemoryError> {
    let failed = |source| MemoryError::Io {
        path: path.to_owned(),
        source,
    };
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if !found.is_dir() || found.uid() != own_uid() {
        return Err(MemoryError::NotOurs(path.to_owned()));
    }
    if found.mode() & 0o077 != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(0o700)).map_err(failed)?;
    }
    Ok(())
}

fn in_memory(path: &Path) -> Result<Statfs, MemoryError> {
    let found = statfs(path).map_err(|errno| MemoryError::Io {
        path: path.to_owned(),
        source: errno.into(),
    })?;
    let kind = found.filesystem_type();
    if kind == TMPFS_MAGIC || kind.0 as i64 == RAMFS_MAGIC {
        Ok(found)
    } else {
        Err(MemoryError::NotInMemory(path.to_owned()))
    }
}

/// The size of a file system; the largest number if it has no limit.
fn size(found: &Statfs) -> u64 {
    match found.blocks().saturating_mul(found.block_size() as u64) {
        0 => u64::MAX,
        size => size,
    }
}

/// Lists the memory files of tasks with the bytes that each takes.
fn files(path: &Path) -> io::Result<Vec<(TaskId, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        // A file may be removed meanwhile.
        if let (Some(id), Ok(metadata)) = (id, entry.metadata()) {
            found.push((id, taken(&metadata)));
        }
    }
    Ok(found)
}

fn taken(found: &fs::Metadata) -> u64 {
    found.blocks() * 512
}

#[cfg(test)]
mod tests;
