//! The memory files of tasks: reserved at the start, settled at the end, spilled, evicted, removed.
//!
//! ```text
//!  reserve_memory ──> written by the shim ──> settle_memory ──> evict or remove: the bytes are free
//!        │                    │
//!        │ no room            └── spill: the output is on disk, the bytes are free
//!        v
//!     task file
//! ```

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Seek, SeekFrom},
    path::PathBuf,
};

use heeler_shim::{log::BLOCKS_START, memory_file::MEMORY_FILE_LIMIT};
use nix::{
    fcntl::{Flock, FlockArg},
    libc,
};

use super::{
    MemoryDir,
    budget::{Budget, Share},
    files, taken,
};
use crate::{
    process::task_file::{TaskDir, TaskFile, open_if_exists},
    task::TaskId,
};

impl TaskDir {
    /// Reserves memory for a new task's output and returns the path of its memory file; `None` if the
    /// output must begin in the task file, because there is no memory directory or no room in it.
    pub fn reserve_memory(&self, id: &TaskId) -> Option<PathBuf> {
        let memory = self.memory.as_deref()?;
        let mut budget = memory.budget();
        if budget.shortage(1, memory.limit) > 0 {
            self.settle_all(memory, &mut budget);
        }
        if budget.shortage(1, memory.limit) > 0 {
            return None;
        }
        if let Err(error) = memory.ensure() {
            tracing::debug!(%error, "the output of a foreground task begins on disk");
            return None;
        }
        budget.set(id.clone(), Some(Share::Reserved));
        Some(memory.path(id))
    }

    /// Returns the number of bytes that must be given back, by [`Self::evict`] or [`Self::remove`], before
    /// the output of this many new tasks fits in memory. Zero without a memory directory, and if even an
    /// empty one has no room for them.
    pub fn memory_shortage(&self, tasks: u64) -> u64 {
        let Some(memory) = self.memory.as_deref() else {
            return 0;
        };
        let mut budget = memory.budget();
        if budget.shortage(tasks, memory.limit) > 0 {
            self.settle_all(memory, &mut budget);
        }
        match Budget::default().shortage(tasks, memory.limit) {
            0 => budget.shortage(tasks, memory.limit),
            _ => 0,
        }
    }

    /// The number of tasks whose output fits in memory at once.
    pub(crate) fn memory_capacity(&self) -> u64 {
        let memory = self.memory.as_deref();
        memory.map_or(0, |memory| memory.limit / MEMORY_FILE_LIMIT)
    }

    /// The bytes in memory of a finished task; zero for a live one.
    pub(crate) fn settled_memory(&self, id: &TaskId) -> u64 {
        let memory = self.memory.as_deref();
        memory.map_or(0, |memory| memory.budget().settled(id))
    }

    /// Returns whether any finished task has output in memory.
    pub(crate) fn has_settled_memory(&self) -> bool {
        let memory = self.memory.as_deref();
        memory.is_some_and(|memory| memory.budget().has_settled())
    }

    /// Reduces the reservation of a finished task to the size of its memory file.
    pub(crate) fn settle_memory(&self, id: &TaskId) {
        let Some(memory) = self.memory.as_deref() else {
            return;
        };
        let found = fs::symlink_metadata(memory.path(id)).ok();
        let share = found.map(|found| Share::Settled(taken(&found)));
        memory.budget().set(id.clone(), share);
    }

    /// Deletes the memory file of a finished task and gives its bytes back to the budget. Its output is
    /// gone then. Returns the number of bytes; fails with `WouldBlock` for a task that is not finished.
    pub fn evict(&self, id: &TaskId) -> io::Result<u64> {
        let Some(memory) = self.own_memory() else {
            return Ok(0);
        };
        if !memory.path(id).try_exists()? {
            return Ok(0);
        }
        if let Some(file) = self.open(id)? {
            require_settled(&file)?;
        }
        memory.remove(id)
    }

    /// Returns the tasks with a memory file.
    pub fn tasks_in_memory(&self) -> io::Result<Vec<TaskId>> {
        let Some(memory) = self.own_memory() else {
            return Ok(Vec::new());
        };
        match files(&memory.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            found => Ok(found?.into_iter().map(|(id, _)| id).collect()),
        }
    }

    /// Moves a finished task's output from memory to disk, if it is there. Fails with `WouldBlock` while
    /// the shim has the task: it does so on order. Blocks until the data is on disk.
    pub fn spill(&self, id: &TaskId) -> io::Result<()> {
        let Some(memory) = self.own_memory() else {
            return Ok(());
        };
        let Some(from) = open_if_exists(&memory.path(id), libc::O_NOFOLLOW)? else {
            return Ok(());
        };
        let Some(file) = self.open(id)? else {
            return Ok(());
        };
        require_settled(&file)?;
        let to = OpenOptions::new().write(true).open(self.path(id))?;
        copy_output(from, to)?;
        memory.remove(id).map(drop)
    }

    /// Deletes a task's memory file, if it exists.
    pub(crate) fn remove_from_memory(&self, id: &TaskId) -> io::Result<()> {
        self.own_memory()
            .map_or(Ok(()), |memory| memory.remove(id).map(drop))
    }

    /// Removes the memory directory, if it has no memory file. Called when the server leaves.
    pub(crate) fn release_memory_dir(&self) {
        if let Some(memory) = self.own_memory()
            && let Some(claimed) = memory.claimed().take()
        {
            claimed.remove_if_empty(&memory.path, &memory.state_dir);
        }
    }

    /// The memory directory, if it exists and belongs to this user.
    pub(in crate::process::task_file) fn own_memory(&self) -> Option<&MemoryDir> {
        self.memory.as_deref().filter(|memory| memory.is_ours())
    }

    /// Reduces the reservations of all tasks that no longer need them.
    fn settle_all(&self, memory: &MemoryDir, budget: &mut Budget) {
        for id in budget.reserved() {
            // A task that cannot be examined keeps its reservation.
            if let Ok(share) = self.share(memory, &id) {
                budget.set(id, share);
            }
        }
    }

    fn share(&self, memory: &MemoryDir, id: &TaskId) -> io::Result<Option<Share>> {
        let Some(file) = self.open(id)? else {
            return Ok(Some(Share::Reserved));
        };
        let records = file.records()?;
        Ok(match fs::symlink_metadata(memory.path(id)) {
            Ok(found) if records.show_an_end() || is_unlocked(&file.file)? => {
                Some(Share::Settled(taken(&found)))
            }
            // The file is created before the start is recorded, so it existed and has been moved.
            Err(_) if records.start.whole().is_some() => None,
            Ok(_) | Err(_) => Some(Share::Reserved),
        })
    }
}

fn require_settled(file: &TaskFile) -> io::Result<()> {
    if file.records()?.show_an_end() || is_unlocked(&file.file)? {
        return Ok(());
    }
    let problem = "the task's shim is still writing its output";
    Err(io::Error::new(io::ErrorKind::WouldBlock, problem))
}

/// Returns whether no shim has the file locked. To be used only once the memory file exists: before that,
/// the test could make the shim's own lock fail, which cancels its start.
fn is_unlocked(file: &File) -> io::Result<bool> {
    match Flock::lock(file.try_clone()?, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(true),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(false),
        Err((_, error)) => Err(error.into()),
    }
}

/// Copies everything behind the header page to the same position, and waits for the disk.
fn copy_output(mut from: File, mut to: File) -> io::Result<()> {
    from.seek(SeekFrom::Start(BLOCKS_START))?;
    to.seek(SeekFrom::Start(BLOCKS_START))?;
    io::copy(&mut from, &mut to)?;
    to.sync_data()
}
