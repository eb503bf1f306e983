//! A foreground task's output while it is in memory, and its move to disk.

use core::ffi::CStr;

use heeler_shim::log::BLOCKS_START;

use crate::program::{
    clock::Moment,
    pages::{BUFFER, Pages},
    startup::arguments::Durability,
    sys::{
        Errno, Fd, Result,
        file::{self, Part},
    },
};

/// The pause before a disk that refused output is tried again.
const RETRY_MILLIS: u64 = 1000;

/// A memory file, locked as long as this value lives.
pub(super) struct MemoryFile<'a> {
    fd: Fd,
    path: &'a CStr,
    /// The output must be moved to disk, whatever its size.
    wanted: bool,
    refusal: Option<Refusal>,
}

/// The last error of the disk.
#[derive(Clone, Copy)]
struct Refusal {
    errno: Errno,
    retry: Moment,
}

impl<'a> MemoryFile<'a> {
    /// Creates the file in place of any other: the path belongs to this task alone. The lock tells
    /// every server that a live shim uses the file.
    pub(super) fn create(path: &'a CStr) -> Result<Self> {
        let fd = match file::open(path, file::Open::Create) {
            Err(Errno::EEXIST) => {
                file::remove(path)?;
                file::open(path, file::Open::Create)?
            }
            created => created?,
        };
        // A server may hold it for the moment in which it tests the lock.
        let _ = file::lock(&fd);
        Ok(Self {
            fd,
            path,
            wanted: false,
            refusal: None,
        })
    }

    pub(super) fn fd(&self) -> &Fd {
        &self.fd
    }

    pub(super) fn want_on_disk(&mut self) {
        self.wanted = true;
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// Returns whether another process has removed the file's name.
    pub(super) fn is_unlinked(&self) -> bool {
        matches!(file::links_and_size(&self.fd), Ok((0, _)))
    }

    /// Moves the output up to `end` to disk. It is complete in both files before the name of this one
    /// is removed.
    pub(super) fn move_to(&mut self, disk: &Fd, end: u64, durability: Durability) -> Result<()> {
        let now = Moment::now();
        if let Some(Refusal { errno, retry }) = self.refusal
            && now < retry
        {
            return Err(errno);
        }
        let moved = copy(&self.fd, disk, end)
            .and_then(|()| match durability {
                Durability::Process => Ok(()),
                Durability::Power => file::sync_data(disk),
            })
            .and_then(|()| match file::remove(self.path) {
                Ok(()) | Err(Errno::ENOENT) => Ok(()),
                Err(errno) => Err(errno),
            });
        if let Err(errno) = moved {
            self.refusal = Some(Refusal {
                errno,
                retry: now.after(RETRY_MILLIS),
            });
            // Other processes may need the space.
            let _ = file::truncate(disk, BLOCKS_START);
        }
        moved
    }
}

/// Copies all output up to a position. It uses pages of its own, since the capture buffer holds the
/// next bytes.
fn copy(from: &Fd, to: &Fd, end: u64) -> Result<()> {
    let mut pages = Pages::new(BUFFER)?;
    let mut at = BLOCKS_START;
    while at < end {
        let len = (end - at).min(BUFFER as u64) as usize;
        let room = pages.bytes().get_mut(..len).unwrap_or_default();
        let len = match file::read_at(from, room, at)? {
            // Another process has truncated the file. The missing part reads as a damaged block.
            0 => return Ok(()),
            len => len,
        };
        let mut parts = [Part::new(room.get(..len).unwrap_or_default())];
        file::write_all_at(to, &mut parts, at).map_err(|(errno, _)| errno)?;
        at += len as u64;
    }
    Ok(())
}
