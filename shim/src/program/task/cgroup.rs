//! The task's cgroup: created for it, killed as a whole, removed when it is empty.

use core::ffi::CStr;

use heeler_shim::procfs::{is_populated, number};

use crate::program::sys::{Fd, Result, file};

/// A cgroup v2 leaf with the leader in it.
pub(crate) struct Cgroup<'a> {
    path: &'a CStr,
    dir: Fd,
}

impl<'a> Cgroup<'a> {
    /// Creates the cgroup, or opens an existing one.
    pub(super) fn make(path: &'a CStr) -> Result<Self> {
        // An existing one is fine, and any other error shows when it is opened.
        let _ = file::make_directory(path);
        Self::open(path)
    }

    pub(crate) fn open(path: &'a CStr) -> Result<Self> {
        Ok(Self {
            path,
            dir: file::open(path, file::Open::Base)?,
        })
    }

    /// The directory, for a clone into the cgroup.
    pub(crate) fn dir(&self) -> &Fd {
        &self.dir
    }

    /// Kills every member at once.
    pub(crate) fn kill(&self) -> Result<()> {
        let switch = self.kill_switch()?;
        file::write(&switch, b"1").map(drop)
    }

    /// Opens the file that kills the cgroup.
    pub(crate) fn kill_switch(&self) -> Result<Fd> {
        file::open_at(&self.dir, c"cgroup.kill", file::Open::Write)
    }

    /// Returns whether the cgroup has no member. False if that cannot be read.
    pub(super) fn is_empty(&self) -> bool {
        let mut text = [0; 128];
        file::open_at(&self.dir, c"cgroup.events", file::Open::Read)
            .and_then(|events| file::read(&events, &mut text))
            .is_ok_and(|len| len > 0 && !is_populated(text.get(..len).unwrap_or_default()))
    }

    /// The CPU time of all processes that were ever in it, or `None` if it cannot be read.
    pub(super) fn cpu_micros(&self) -> Option<u64> {
        let mut text = [0; 64];
        let stat = file::open_at(&self.dir, c"cpu.stat", file::Open::Read).ok()?;
        let len = file::read(&stat, &mut text).ok()?;
        // The first line.
        let first = text.get(..len)?.split(|byte| *byte == b'\n').next()?;
        number(first.strip_prefix(b"usage_usec ")?)
    }

    /// Removes the cgroup if it is empty.
    pub(super) fn remove(&self) {
        let _ = file::remove_directory(self.path);
    }
}
