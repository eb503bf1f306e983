//! A memory directory in use: locked by its server, and linked to its state directory.
//!
//! The lock is shared, so that it keeps only the removal of stale directories away. It is on the
//! directory's inode, so it holds across pid and mount namespaces.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, symlink},
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{Flock, FlockArg},
    libc::{O_DIRECTORY, O_NOFOLLOW},
};

/// The symbolic link to the state directory. It is read, and never followed.
const STATE_DIR_LINK: &str = "state-dir";
/// The most attempts against a server that removes the directory as stale at the same time.
const ATTEMPTS: usize = 8;

/// A locked directory.
#[derive(Debug)]
pub(super) struct ClaimedDir {
    lock: Flock<File>,
    inode: u64,
}

impl ClaimedDir {
    /// Creates the directory if it does not exist, locks it, and links it to the state directory.
    pub(super) fn claim(path: &Path, state_dir: &Path) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            match DirBuilder::new().mode(0o700).create(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let dir = match open_dir(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened?,
            };
            let inode = dir.metadata()?.ino();
            let lock = Flock::lock(dir, FlockArg::LockShared).map_err(|(_, errno)| errno)?;
            let claimed = Self { lock, inode };
            // It may have been removed while the lock was waited for.
            if claimed.is_at(path) {
                link_state_dir(path, state_dir)?;
                return Ok(claimed);
            }
        }
        Err(io::Error::from(io::ErrorKind::ResourceBusy))
    }

    /// Returns whether the directory is still the one at this path.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        fs::symlink_metadata(path).is_ok_and(|found| found.ino() == self.inode)
    }

    /// Removes the directory if it has no memory file; it stays in use otherwise.
    pub(super) fn remove_if_empty(&self, path: &Path, state_dir: &Path) {
        if !self.is_at(path) || entries(path).is_ok_and(|names| !names.is_empty()) {
            return;
        }
        // Without the link, an empty directory counts as stale: a crash here leaves nothing behind.
        let _ = fs::remove_file(path.join(STATE_DIR_LINK));
        if fs::remove_dir(path).is_err() {
            let _ = link_state_dir(path, state_dir);
        }
    }
}

impl Drop for ClaimedDir {
    fn drop(&mut self) {
        // Unlocked at once, though a shim that is being started may have the descriptor for a moment.
        let _ = self.lock.relock(FlockArg::Unlock);
    }
}

/// Opens a directory itself: fails for a symbolic link and for anything else.
pub(super) fn open_dir(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(O_DIRECTORY | O_NOFOLLOW)
        .open(path)
}

/// Returns the state directory that a memory directory belongs to; `None` if it does not say.
pub(super) fn state_dir_of(path: &Path) -> Option<PathBuf> {
    fs::read_link(path.join(STATE_DIR_LINK)).ok()
}

pub(super) fn remove_state_dir_link(path: &Path) -> io::Result<()> {
    fs::remove_file(path.join(STATE_DIR_LINK))
}

/// Lists the names in a memory directory, without the link to its state directory.
pub(super) fn entries(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(path)? {
        let name = entry?.file_name();
        if name != STATE_DIR_LINK {
            names.push(name);
        }
    }
    Ok(names)
}

/// Replaces the link of a state directory that has moved.
fn link_state_dir(path: &Path, state_dir: &Path) -> io::Result<()> {
    let link = path.join(STATE_DIR_LINK);
    if fs::read_link(&link).is_ok_and(|target| target == state_dir) {
        return Ok(());
    }
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => symlink(state_dir, &link),
    }
}
