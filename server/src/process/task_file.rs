//! What a shim leaves behind: the records of a task's life, and its output.
//!
//! Read only, but for an empty place (see `place`): a shim writes its task file alone, and whoever
//! reads takes what is there, be it still growing, cut short or damaged in places.

mod header;
mod place;

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use heeler_shim::log::{
    BLOCK_HEADER, BLOCK_SIZE, BLOCKS_START, BlockHeader, FRAME_HEADER, FrameHeader, Stream as Tag,
    block_position,
};

pub use header::{Records, Slot};
pub use place::{Found, Place};

use super::disk;
use crate::task::{Chunk, Stream, Tail, TaskId, TaskUid, Timestamp};

/// Where the task files of a state directory are.
#[derive(Debug, Clone)]
pub struct TaskDir(PathBuf);

/// One task's file.
#[derive(Debug)]
pub struct TaskFile(File);

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
        Self(state_dir.join("tasks"))
    }

    /// The directory.
    pub fn as_path(&self) -> &Path {
        &self.0
    }

    /// A text as long as the longest path of a task file in this directory.
    pub fn room_for_path(dir: &Path) -> String {
        " ".repeat(dir.as_os_str().len() + "/x/".len() + TaskId::LONGEST)
    }

    /// Makes the directories. Files are spread over a few, for the sake of bulk deletion.
    pub fn create(&self) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.recursive(true).mode(0o700);
        private.create(&self.0)?;
        if let Err(error) = disk::keep_apart(&self.0) {
            // Most file systems have no such wish to fulfil.
            tracing::debug!(%error, "task files lie where the file system puts them");
        }
        for first in ('a'..='z').chain('2'..='7') {
            let dir = self.0.join(first.to_string());
            private.create(dir)?;
        }
        Ok(())
    }

    /// Whether there is no task file at all, as far as can be seen.
    pub fn is_empty(&self) -> bool {
        let below = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
        below(&self.0).all(|part| below(&part.path()).next().is_none())
    }

    /// Where a task's file is, or will be.
    pub fn path(&self, id: &TaskId) -> PathBuf {
        let last = id.as_str().chars().next_back().unwrap_or('a');
        self.0.join(last.to_string()).join(id.as_str())
    }

    /// Opens a task's file; `None` if there is none.
    pub fn open(&self, id: &TaskId) -> io::Result<Option<TaskFile>> {
        // Whatever else may be there, e.g. a FIFO, does not keep us waiting.
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(self.path(id));
        match opened {
            Ok(file) => Ok(Some(TaskFile(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes a task's file, if there is one.
    pub fn remove(&self, id: &TaskId) -> io::Result<()> {
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
        read_up_to(&self.0, &mut page, 0)?;
        Ok(Records::read(&page))
    }

    /// Up to `limit` bytes of output from `offset` on.
    pub fn read(&self, offset: u64, limit: usize) -> io::Result<Reading> {
        let blocks = self.blocks()?;
        let end = self.end(blocks)?;
        let mut reading = Reading {
            chunks: Vec::new(),
            end,
        };
        if offset >= end {
            return Ok(reading);
        }
        let mut left = limit;
        let mut buffer = vec![0; BLOCK_SIZE];
        for index in self.block_of(offset, blocks)?..blocks {
            if left == 0 {
                break;
            }
            let read = read_up_to(&self.0, &mut buffer, block_position(index))?;
            for (at, frame, bytes) in frames(&buffer[..read]) {
                take(
                    &mut reading.chunks,
                    offset,
                    end,
                    &mut left,
                    at,
                    frame,
                    bytes,
                );
            }
        }
        Ok(reading)
    }

    /// The last `limit` bytes of output.
    pub fn tail(&self, limit: usize) -> io::Result<Tail> {
        let end = self.end(self.blocks()?)?;
        let reading = self.read(end.saturating_sub(limit as u64), limit)?;
        Ok(Tail {
            chunks: reading.chunks,
            end: reading.end,
        })
    }

    /// How many blocks have begun.
    fn blocks(&self) -> io::Result<u64> {
        let size = self.0.metadata()?.len();
        Ok(size
            .saturating_sub(BLOCKS_START)
            .div_ceil(BLOCK_SIZE as u64))
    }

    /// The offset behind the last byte: looked for in the last block that can be read.
    fn end(&self, blocks: u64) -> io::Result<u64> {
        if blocks == 0 {
            return Ok(0);
        }
        let mut buffer = vec![0; BLOCK_SIZE];
        for index in (0..blocks).rev() {
            let read = read_up_to(&self.0, &mut buffer, block_position(index))?;
            let Some(header) = block_header(&buffer[..read]) else {
                continue;
            };
            let last = frames(&buffer[..read]).last();
            return Ok(last.map_or(header.first_offset, |(at, _, bytes)| {
                at + bytes.len() as u64
            }));
        }
        Ok(0)
    }

    /// The last block that begins at or before the offset. A damaged block counts as beginning where
    /// the next good one does.
    fn block_of(&self, offset: u64, blocks: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, blocks);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            match self.first_offset(middle, high)? {
                Some(first) if first <= offset => low = middle,
                Some(_) | None => high = middle,
            }
        }
        Ok(low)
    }

    fn first_offset(&self, from: u64, to: u64) -> io::Result<Option<u64>> {
        for index in from..to {
            let mut bytes = [0; BLOCK_HEADER];
            read_up_to(&self.0, &mut bytes, block_position(index))?;
            if let Some(header) = BlockHeader::decode(&bytes) {
                return Ok(Some(header.first_offset));
            }
        }
        Ok(None)
    }
}

fn read_up_to(file: &File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], position + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn block_header(block: &[u8]) -> Option<BlockHeader> {
    BlockHeader::decode(block.first_chunk()?)
}

/// The frames of a block with their offsets. The last one may have fewer bytes than it says: they
/// are still being written, or never will be.
fn frames(block: &[u8]) -> impl Iterator<Item = (u64, FrameHeader, &[u8])> {
    let mut offset = block_header(block).map(|header| header.first_offset);
    let mut rest = block.get(BLOCK_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let at = offset?;
        let frame = FrameHeader::decode(rest.first_chunk()?)?;
        let body = &rest[FRAME_HEADER..];
        let bytes = &body[..body.len().min(frame.len as usize)];
        rest = &body[bytes.len()..];
        offset = Some(at + bytes.len() as u64);
        (!bytes.is_empty()).then_some((at, frame, bytes))
    })
}

/// Adds the part of a frame that lies between `from` and `to`, and within what is left to give.
fn take(
    chunks: &mut Vec<Chunk>,
    from: u64,
    to: u64,
    left: &mut usize,
    at: u64,
    frame: FrameHeader,
    bytes: &[u8],
) {
    let skip = usize::try_from(from.saturating_sub(at))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let until = usize::try_from(to.saturating_sub(at))
        .unwrap_or(usize::MAX)
        .min(bytes.len());
    let wanted = &bytes[skip.min(until)..until];
    let given = &wanted[..wanted.len().min(*left)];
    if given.is_empty() {
        return;
    }
    *left -= given.len();
    chunks.push(Chunk {
        offset: at + skip as u64,
        stream: match frame.stream {
            Tag::Stdout => Stream::Stdout,
            Tag::Stderr => Stream::Stderr,
        },
        at: Timestamp(frame.time_micros),
        data: given.to_vec(),
    });
}
