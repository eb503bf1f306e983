//! The destination of output: a memory file while there is little of it and nothing asks for it on disk,
//! else the task file.
//!
//! ```text
//!          too much output, no room in memory, ordered, or its name is gone:
//!          copied, synced if required, and only then unlinked
//!  memory ───────────────────────────────────────────────────────────────────> disk
//!    ^  │ the disk refuses: the newest output stays here, and the move is tried again
//!    └──┘
//! ```
//!
//! The limits on output are the same in both files.

use core::ffi::CStr;

use heeler_shim::{log::Stream, memory_file::has_room, output_policy::OutputPolicy};

use super::{
    limits::News,
    log_file::{Growth, LogFile, Loss, Unwritten},
    memory_file::MemoryFile,
};
use crate::program::{
    startup::arguments::Durability,
    sys::{Errno, Fd, Result},
};

/// The output written so far.
pub(crate) struct Writer<'a> {
    output: LogFile,
    /// `None` once the output is on disk.
    memory: Option<MemoryFile<'a>>,
    durability: Durability,
    /// The error after which the file can no longer be written.
    broken: Option<Errno>,
}

impl<'a> Writer<'a> {
    /// Begins in the memory file, if there is one and it can be created, else on disk.
    pub(crate) fn new(
        memory: Option<&'a CStr>,
        policy: OutputPolicy,
        durability: Durability,
    ) -> Self {
        Self {
            output: LogFile::new(policy),
            memory: memory.and_then(|path| MemoryFile::create(path).ok()),
            durability,
            broken: None,
        }
    }

    /// The amount of output that a reader can know of.
    pub(crate) fn end(&self) -> u64 {
        self.output.log.offset() + self.output.limits.dropped()
    }

    pub(crate) fn loss(&self) -> Loss {
        self.output.loss
    }

    /// The bytes that the output takes on disk, at most.
    pub(crate) fn stored(&self) -> u64 {
        match self.memory {
            Some(_) => 0,
            None => self.output.log.size(),
        }
    }

    pub(crate) fn take_news(&mut self) -> News {
        self.output.limits.take_news()
    }

    /// Writes the bytes, or counts them as dropped or lost.
    pub(crate) fn write(&mut self, stream: Stream, mut bytes: &[u8], disk: &Fd) {
        if let Some(errno) = self.broken {
            return self.output.lose(errno, bytes.len() as u64);
        }
        if self.memory.is_some() && has_room(&self.output.log, bytes.len()) {
            match self.put(stream, bytes, disk, Growth::InMemory) {
                Ok(()) => return,
                Err((_, rest)) => bytes = rest,
            }
        }
        let growth = match self.move_to_disk(disk) {
            Ok(()) => Growth::OnDisk,
            Err(errno) => Growth::Refused(errno),
        };
        if let Err((errno, rest)) = self.put(stream, bytes, disk, growth) {
            self.output.lose(errno, rest.len() as u64);
        }
    }

    fn put<'b>(
        &mut self,
        stream: Stream,
        bytes: &'b [u8],
        disk: &Fd,
        growth: Growth,
    ) -> core::result::Result<(), Unwritten<'b>> {
        let out = self.memory.as_ref().map_or(disk, MemoryFile::fd);
        self.output.write(stream, bytes, (out, disk), growth)
    }

    /// Moves the output to disk, now or as soon as the disk takes it.
    pub(crate) fn spill(&mut self, disk: &Fd) {
        if let Some(memory) = &mut self.memory {
            memory.want_on_disk();
            let _ = self.move_to_disk(disk);
        }
    }

    /// Returns whether a move to disk still has to be tried again.
    pub(crate) fn is_due_on_disk(&self) -> bool {
        self.memory.as_ref().is_some_and(MemoryFile::is_wanted)
    }

    /// Keeps the output within so many bytes from now on.
    pub(crate) fn limit(&mut self, bytes: u64, disk: &Fd) {
        let out = self.memory.as_ref().map_or(disk, MemoryFile::fd);
        if let Err(errno) = self.output.limit(bytes, (out, disk)) {
            self.broken = Some(errno);
        }
    }

    /// Returns whether [`Self::settle`] has something to do.
    pub(crate) fn is_behind(&self) -> bool {
        self.output.limits.is_behind()
    }

    /// Completes the count of dropped bytes, so that [`Self::end`] is exact.
    pub(crate) fn settle(&mut self, disk: &Fd) {
        if self.is_behind() {
            self.output.limits.record_dropped(disk);
        }
    }

    /// Called after the last output. A memory file that was unlinked by another process would vanish
    /// with this shim's descriptor, so it is saved.
    pub(crate) fn finish(&mut self, disk: &Fd) {
        let unlinked = self.memory.as_ref().is_some_and(MemoryFile::is_unlinked);
        if unlinked && let Err(errno) = self.move_to_disk(disk) {
            self.output.lose(errno, self.output.log.offset());
        }
    }

    /// Succeeds if the output is on disk.
    fn move_to_disk(&mut self, disk: &Fd) -> Result<()> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        memory.move_to(disk, self.output.log.size(), self.durability)?;
        self.memory = None;
        Ok(())
    }
}
