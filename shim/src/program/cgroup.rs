//! The task's cgroup: made for it, killed as a whole, removed when it is empty.

use core::ffi::CStr;

use heeler_shim::procfs::is_populated;

use super::sys::{Fd, Result, file};

/// A cgroup of the second hierarchy, with the leader in it.
pub(super) struct Cgroup<'a> {
    path: &'a CStr,
    dir: Fd,
}

impl<'a> Cgroup<'a> {
    /// Makes it, or takes the one that is there.
    pub(super) fn make(path: &'a CStr) -> Result<Self> {
        // One that exists already is fine, and any other trouble shows at the next step.
        let _ = file::make_directory(path);
        Self::open(path)
    }

    /// Opens one that is there.
    pub(super) fn open(path: &'a CStr) -> Result<Self> {
        Ok(Self {
            path,
            dir: file::open(path, file::Open::Name)?,
        })
    }

    /// For a child to be born in.
    pub(super) fn dir(&self) -> &Fd {
        &self.dir
    }

    /// Kills every member, now and with no way around it.
    pub(super) fn kill(&self) -> Result<()> {
        let switch = self.kill_switch()?;
        file::write(&switch, b"1").map(drop)
    }

    /// What kills it, opened.
    pub(super) fn kill_switch(&self) -> Result<Fd> {
        file::open_at(&self.dir, c"cgroup.kill", file::Open::Write)
    }

    /// Whether it has no member. One that cannot be read is not known to be empty.
    pub(super) fn is_empty(&self) -> bool {
        let mut text = [0; 128];
        file::open_at(&self.dir, c"cgroup.events", file::Open::Read)
            .and_then(|events| file::read(&events, &mut text))
            .is_ok_and(|len| len > 0 && !is_populated(text.get(..len).unwrap_or_default()))
    }

    /// Removes it, if it is empty.
    pub(super) fn remove(&self) {
        let _ = file::remove_directory(self.path);
    }
}
