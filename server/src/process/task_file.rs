//! The files of a task: its records and its output.
//!
//! A shim alone writes its task file. The server only reads it, with two exceptions: it claims the place
//! of a file that does not exist or is empty (`claim`), and it moves output from memory to disk when no
//! shim is left to do so (`memory`). A reader takes what is there, whether the file is still growing, cut
//! short or damaged in places.

mod claim;
mod directory;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod memory;
mod output;
mod records;

use std::{
    fs::{File, OpenOptions},
    io,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use heeler_shim::log::BLOCKS_START;

pub(crate) use claim::FileState;
pub use directory::TaskDir;
pub(crate) use directory::TaskDirEntry;
pub use memory::MemoryDir;
#[cfg(test)]
pub(crate) use records::Slot;
pub(crate) use records::{CgroupPath, Identity, LeaderExit, Limit, LimitCause, Stage};
pub use records::{Exit, Records, Start, TreeEnd};

use crate::task::{Gap, Item, Moment, Tail, TaskUid};
use output::{Output, read_up_to};

/// An open task file, and the path of its memory file.
#[derive(Debug)]
pub struct TaskFile {
    file: File,
    memory: Option<PathBuf>,
}

/// Some output, and the amount of all output.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// In the order of arrival, from the requested offset on, each where the one before it ends.
    pub items: Vec<Item>,
    /// The amount of output at the time of the read, missing output included.
    pub end: u64,
}

/// The last output of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LastOutput {
    /// The moment at which the last bytes were read from the pipe; `None` if there is no output.
    pub at: Option<Moment>,
    /// The amount of output.
    pub end: u64,
}

impl TaskFile {
    /// Returns whether the file belongs to this task. True if its identity cannot be read.
    fn is_of(&self, uid: TaskUid) -> io::Result<bool> {
        let identity = self.records()?.identity.whole();
        Ok(identity.is_none_or(|identity| identity.task_uid == *uid.as_bytes()))
    }

    pub fn records(&self) -> io::Result<Records> {
        let mut page = [0; BLOCKS_START as usize];
        read_up_to(&self.file, &mut page, 0)?;
        Ok(Records::read(&page))
    }

    /// Reads up to `limit` bytes of output from `offset` on.
    pub fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        self.with_output(|output| output.read(offset, limit))
    }

    /// Reads the last `limit` bytes of output, and the gap behind them.
    pub fn tail(&self, limit: usize) -> io::Result<Tail> {
        self.with_output(|output| output.tail(limit))
    }

    /// Returns the time of the last output by both clocks.
    pub fn last_output(&self) -> io::Result<LastOutput> {
        self.with_output(|output| output.last())
    }

    /// The offset behind the last byte that was kept.
    pub fn stored_end(&self) -> io::Result<u64> {
        self.with_output(|output| output.stored_end())
    }

    /// The output that is missing by rule.
    pub fn gaps(&self) -> io::Result<Vec<Gap>> {
        self.with_output(|output| output.gaps())
    }

    /// The bytes of disk that the file takes.
    pub fn stored(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks() * 512)
    }

    /// The memory file is looked up for each read, since the output may move to disk at any time. A
    /// reader that has it open reads a prefix of what is on disk.
    fn with_output<T>(&self, read: impl FnOnce(&Output<'_>) -> io::Result<T>) -> io::Result<T> {
        let memory = match self.memory.as_deref() {
            Some(path) => open_if_exists(path, nix::libc::O_NOFOLLOW)?,
            None => None,
        };
        read(&Output {
            blocks: memory.as_ref().unwrap_or(&self.file),
            records: &self.file,
        })
    }
}

/// Opens a file to read it; `None` if it does not exist. A FIFO does not block.
fn open_if_exists(path: &Path, flags: i32) -> io::Result<Option<File>> {
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
