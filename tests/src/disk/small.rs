//! A small tmpfs for a daemon's state, which a test can fill.
//!
//! It is mounted in a mount namespace of the test's thread, which the daemon inherits; the mount goes
//! with the last of them. A test with such a disk must therefore stay on one thread.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{daemon_on, fill, own_mounts, run};
use crate::Daemon;

/// A small file system.
#[derive(Debug)]
pub struct SmallDisk {
    mount: TempDir,
}

impl SmallDisk {
    /// Mounts one of this many MiB. Returns `None`, after reporting a skip, where the user may not mount.
    pub fn mount(mebibytes: u32) -> Option<Self> {
        if !own_mounts() {
            return None;
        }
        let dir = tempfile::Builder::new()
            .prefix("heeler-disk-")
            .tempdir_in("/tmp")
            .unwrap();
        let disk = Self { mount: dir };
        let (size, target) = (format!("size={mebibytes}m,mode=0700"), disk.path());
        let target = target.to_str().expect("UTF-8");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", target]);
        Some(disk)
    }

    /// Mounts one, and starts a daemon that keeps its state there.
    pub async fn with_daemon(mebibytes: u32) -> Option<(Self, Daemon)> {
        let disk = Self::mount(mebibytes)?;
        let mut daemon = disk.daemon(Daemon::builder());
        daemon.restart().await;
        Some((disk, daemon))
    }

    /// Prepares a daemon that keeps its state here.
    pub fn daemon(&self, builder: crate::daemon::Builder) -> Daemon {
        daemon_on(self.path(), builder)
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        fill(&self.filler());
    }

    /// Frees the space again.
    pub fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Remounts it `ro` or `rw`. No file may be open for writing.
    pub fn remount(&self, access: &str) {
        let target = self.path();
        let options = format!("remount,{access}");
        let target = target.to_str().expect("UTF-8");
        run("mount", &["-o", &options, target]);
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lets the directory be removed now, before the namespace ends.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}
