//! Output in memory: where it is, how much there may be of it, and its way to the disk when no shim
//! is there to take it.
//!
//! A foreground task's output begins in a file of the task's name, in a private directory on a file
//! system that has no disk. The shim writes it, and nobody has to hold it: it is there until the
//! shim moves it to the task file, the task is removed, or the machine is started anew. If there is
//! one, it is the task's output, and else the task file is (see [`heeler_shim::memory`]).
//!
//! The directory is made when it is first needed.

mod held;

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use heeler_shim::{log::BLOCKS_START, record::Start};
use nix::{
    fcntl::{Flock, FlockArg},
    sys::statfs::{Statfs, TMPFS_MAGIC, statfs},
};
use uuid::Uuid;

use held::{Held, Share};

use super::{Records, TaskDir, open_if_there};
use crate::{process::own_uid, task::TaskId};

/// Where file systems without a disk are, on any Linux.
const SHARED_MEMORY: &str = "/dev/shm";
/// `RAMFS_MAGIC` of the kernel's `magic.h`.
const RAMFS_MAGIC: i64 = 0x8584_58f6;
/// The part of the file system that may be taken: others use it too, and in a container it may be small.
const SHARE: u64 = 2;

/// The directory, and what is in it.
#[derive(Debug)]
pub struct MemoryDir {
    path: PathBuf,
    limit: u64,
    held: Mutex<Held>,
}

/// Why output does not begin in memory.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A disk is what was to be avoided.
    #[error("{} is not on a file system in memory", .0.display())]
    NotInMemory(PathBuf),
    /// Others could read, or plant, what is there.
    #[error("{} is not a directory of this user", .0.display())]
    NotOurs(PathBuf),
    /// It cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// Which directory.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

impl MemoryDir {
    /// The directory that a state directory has for itself in this one, or in the system's own.
    pub fn of(directory_id: Uuid, within: Option<&Path>) -> PathBuf {
        let within = within.unwrap_or(Path::new(SHARED_MEMORY));
        within.join(format!("heeler-{}", directory_id.simple()))
    }

    /// For so many bytes of output between all tasks. What is there counts.
    pub fn open(path: &Path, limit: u64) -> Result<Self, MemoryError> {
        let failed = |source| MemoryError::Io {
            path: path.to_owned(),
            source,
        };
        let mut held = Held::default();
        let exists = match fs::symlink_metadata(path) {
            Ok(_) => true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(failed(error)),
        };
        let found = match (exists, path.parent()) {
            (true, _) => {
                check(path)?;
                for (id, bytes) in files(path).map_err(failed)? {
                    held.set(id, Some(Share::Settled(bytes)));
                }
                in_memory(path)?
            }
            (false, Some(parent)) => in_memory(parent)?,
            (false, None) => return Err(MemoryError::NotOurs(path.to_owned())),
        };
        Ok(Self {
            path: path.to_owned(),
            limit: limit.min(size(&found) / SHARE),
            held: Mutex::new(held),
        })
    }

    /// Where a task's output is, if it is in memory.
    pub(super) fn path(&self, id: &TaskId) -> PathBuf {
        self.path.join(id.as_str())
    }

    /// Whether what is in the directory can be believed: whoever knows its name could have made it before
    /// us. What is ours nobody else can put away.
    fn is_ours(&self) -> bool {
        let found = fs::symlink_metadata(&self.path);
        found.is_ok_and(|found| found.is_dir() && found.uid() == own_uid())
    }

    /// Deletes a task's output, if it is here.
    fn remove(&self, id: &TaskId) -> io::Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.held().set(id.clone(), None);
        Ok(())
    }

    /// Makes the directory if it is not there, and looks whether it can be trusted.
    fn make(&self) -> Result<(), MemoryError> {
        if check(&self.path).is_ok() {
            return Ok(());
        }
        let made = DirBuilder::new().mode(0o700).create(&self.path);
        match made {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(MemoryError::Io {
                path: self.path.clone(),
                source: error,
            }),
            Ok(()) | Err(_) => check(&self.path),
        }?;
        in_memory(&self.path).map(drop)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskDir {
    /// Where a new task's output is to begin: `None` if that is its task file, because there is no
    /// place in memory or no more room there.
    pub fn memory_place(&self, id: &TaskId) -> Option<PathBuf> {
        let memory = self.memory.as_deref()?;
        let mut held = memory.held();
        if !held.has_room(memory.limit) {
            self.settle(memory, &mut held);
        }
        if !held.has_room(memory.limit) {
            return None;
        }
        if let Err(error) = memory.make() {
            tracing::debug!(%error, "output goes to the disk");
            return None;
        }
        held.set(id.clone(), Some(Share::Reserved));
        Some(memory.path(id))
    }

    /// The directory in memory, if it is there and is ours.
    pub(super) fn own_memory(&self) -> Option<&MemoryDir> {
        self.memory.as_deref().filter(|memory| memory.is_ours())
    }

    /// What a task that is over has taken of the room, in place of what was kept for it.
    pub fn settle_memory(&self, id: &TaskId) {
        let Some(memory) = self.memory.as_deref() else {
            return;
        };
        let found = fs::symlink_metadata(memory.path(id)).ok();
        let share = found.map(|found| Share::Settled(taken(&found)));
        memory.held().set(id.clone(), share);
    }

    /// Whose output is in memory now.
    pub fn in_memory(&self) -> io::Result<Vec<TaskId>> {
        let Some(memory) = self.own_memory() else {
            return Ok(Vec::new());
        };
        match files(&memory.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            found => Ok(found?.into_iter().map(|(id, _)| id).collect()),
        }
    }

    /// Moves a task's output from memory to the disk, if it is there and nobody writes it any more:
    /// a shim that still has the task does so by order. To be used where it may take its time.
    pub fn spill(&self, id: &TaskId) -> io::Result<()> {
        let Some(memory) = self.own_memory() else {
            return Ok(());
        };
        let Some(from) = open_if_there(&memory.path(id), nix::libc::O_NOFOLLOW)? else {
            return Ok(());
        };
        let Some(file) = self.open(id)? else {
            return Ok(());
        };
        if !is_end(&file.records()?) && !is_free(&file.file)? {
            let problem = "its shim is still writing it";
            return Err(io::Error::new(io::ErrorKind::WouldBlock, problem));
        }
        let to = OpenOptions::new().write(true).open(self.path(id))?;
        copy(from, to)?;
        memory.remove(id)
    }

    /// Deletes a task's output, if it is in memory.
    pub fn remove_from_memory(&self, id: &TaskId) -> io::Result<()> {
        self.own_memory().map_or(Ok(()), |memory| memory.remove(id))
    }

    /// Removes the directory in memory, if there is nothing in it.
    pub fn leave_memory(&self) {
        if let Some(memory) = &self.memory {
            let _ = fs::remove_dir(&memory.path);
        }
    }

    /// Sees who no longer needs all that was reserved.
    fn settle(&self, memory: &MemoryDir, held: &mut Held) {
        for id in held.reserved() {
            // One that cannot be looked at keeps what it has.
            if let Ok(share) = self.share(memory, &id) {
                held.set(id, share);
            }
        }
    }

    fn share(&self, memory: &MemoryDir, id: &TaskId) -> io::Result<Option<Share>> {
        let Some(file) = self.open(id)? else {
            return Ok(Some(Share::Reserved));
        };
        let records = file.records()?;
        Ok(match fs::symlink_metadata(memory.path(id)) {
            Ok(found) if is_end(&records) || is_free(&file.file)? => {
                Some(Share::Settled(taken(&found)))
            }
            // Made before the start is recorded, so that it has been here.
            Err(_) if records.start.whole().is_some() => None,
            Ok(_) | Err(_) => Some(Share::Reserved),
        })
    }
}

fn is_end(records: &Records) -> bool {
    let failed = matches!(records.start.whole(), Some(Start::Failed { .. }));
    failed || records.tree_end.whole().is_some()
}

/// Whether no shim has the file. Asked only of one that a shim has had: this could undo its start.
fn is_free(file: &File) -> io::Result<bool> {
    match Flock::lock(file.try_clone()?, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(true),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(false),
        Err((_, error)) => Err(error.into()),
    }
}

/// All that is behind the header page, to the same position. Whoever asks for that wants it on the
/// disk, and it is rare: so it is waited for.
fn copy(mut from: File, mut to: File) -> io::Result<()> {
    from.seek(SeekFrom::Start(BLOCKS_START))?;
    to.seek(SeekFrom::Start(BLOCKS_START))?;
    io::copy(&mut from, &mut to)?;
    to.sync_data()
}

/// Whether it is a directory, and nobody else's; one that is open to others is closed.
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

/// How large a file system is; one without a limit says 0.
fn size(found: &Statfs) -> u64 {
    match found.blocks().saturating_mul(found.block_size() as u64) {
        0 => u64::MAX,
        size => size,
    }
}

/// The files of tasks, and what each takes.
fn files(path: &Path) -> io::Result<Vec<(TaskId, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let id = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok());
        // One may go while we look.
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
