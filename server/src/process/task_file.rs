//! What a shim leaves behind: the records of a task's life, and its output.
//!
//! Read only, but for an empty place (see `place`) and for output in memory that has no shim any more
//! (see `memory`): a shim writes its task file alone, and whoever reads takes what is there, be it
//! still growing, cut short or damaged in places.

mod header;
mod memory;
mod output;
mod place;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use heeler_shim::log::BLOCKS_START;

pub use header::{Records, Slot};
pub use memory::{MemoryDir, MemoryError};
pub use place::{Found, Place};

use super::disk;
use crate::task::{Chunk, Tail, TaskId, TaskUid};
use output::{Output, read_up_to};

/// Where the task files of a state directory are, and what output of theirs is in memory.
#[derive(Debug, Clone)]
pub struct TaskDir {
    path: PathBuf,
    memory: Option<Arc<MemoryDir>>,
}

/// One task's file, and where its output is while that is in memory.
#[derive(Debug)]
pub struct TaskFile {
    file: File,
    memory: Option<PathBuf>,
}

/// Some output, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// In the order of arrival, the first one beginning at the offset asked for or behind it.
    pub chunks: Vec<Chunk>,
    /// How much output there was when it was read.
    pub end: u64,
}

impl TaskDir {
    /// In this state directory.
    pub fn new(state_dir: &Path) -> Self {
        Self {
            path: state_dir.join("tasks"),
            memory: None,
        }
    }

    /// With output in memory.
    pub fn with_memory(mut self, memory: MemoryDir) -> Self {
        self.memory = Some(Arc::new(memory));
        self
    }

    /// The directory.
    pub fn as_path(&self) -> &Path {
        &self.path
    }

    /// A text as long as the longest path of a task file in this directory.
    pub fn room_for_path(dir: &Path) -> String {
        " ".repeat(dir.as_os_str().len() + "/x/".len() + TaskId::LONGEST)
    }

    /// Makes the directories. Files are spread over a few, for the sake of bulk deletion.
    pub fn create(&self) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.path)?;
        if let Err(error) = disk::keep_apart(&self.path) {
            // Most file systems have no such wish to fulfil.
            tracing::debug!(%error, "task files lie where the file system puts them");
        }
        for first in ('a'..='z').chain('2'..='7') {
            let dir = self.path.join(first.to_string());
            private.create(dir)?;
        }
        Ok(())
    }

    /// Whether there is no task file at all, as far as can be seen.
    pub fn is_empty(&self) -> bool {
        let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
        below(&self.path).all(|part| below(&part.path()).next().is_none())
    }

    /// Where a task's file is, or will be.
    pub fn path(&self, id: &TaskId) -> PathBuf {
        let last = id.as_str().chars().next_back().unwrap_or('a');
        self.path.join(last.to_string()).join(id.as_str())
    }

    /// Opens a task's file; `None` if there is none.
    pub fn open(&self, id: &TaskId) -> io::Result<Option<TaskFile>> {
        let file = open_if_there(&self.path(id), 0)?;
        Ok(file.map(|file| self.task_file(id, file)))
    }

    fn task_file(&self, id: &TaskId, file: File) -> TaskFile {
        let memory = self.own_memory().map(|memory| memory.path(id));
        TaskFile { file, memory }
    }

    /// Deletes a task's file and its output, if there are any.
    pub fn remove(&self, id: &TaskId) -> io::Result<()> {
        self.remove_from_memory(id)?;
        match std::fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl TaskFile {
    /// Whether it is this task's, as far as it can say.
    pub fn is_of(&self, uid: TaskUid) -> io::Result<bool> {
        let identity = self.records()?.identity.whole();
        Ok(identity.is_none_or(|identity| identity.task_uid == *uid.as_bytes()))
    }

    /// What the shim has recorded.
    pub fn records(&self) -> io::Result<Records> {
        let mut page = [0; BLOCKS_START as usize];
        read_up_to(&self.file, &mut page, 0)?;
        Ok(Records::read(&page))
    }

    /// Up to `limit` bytes of output from `offset` on.
    pub fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        match self.in_memory()? {
            Some(memory) => Output(&memory).read(offset, limit),
            None => Output(&self.file).read(offset, limit),
        }
    }

    /// The last `limit` bytes of output.
    pub fn tail(&self, limit: usize) -> io::Result<Tail> {
        match self.in_memory()? {
            Some(memory) => Output(&memory).tail(limit),
            None => Output(&self.file).tail(limit),
        }
    }

    /// The output, if it is in memory. Looked for each time: it may go to the disk meanwhile. Whoever
    /// has opened it then reads on in what was there, which is what the disk has begun with.
    fn in_memory(&self) -> io::Result<Option<File>> {
        let path = self.memory.as_deref();
        path.map_or(Ok(None), |path| open_if_there(path, nix::libc::O_NOFOLLOW))
    }
}

/// Opens a file to read it; `None` if there is none. Whatever else may be there, e.g. a FIFO, does not
/// keep us waiting.
fn open_if_there(path: &Path, flags: i32) -> io::Result<Option<File>> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK | flags)
        .open(path);
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
