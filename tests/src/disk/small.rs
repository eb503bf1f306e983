//! A small tmpfs for a daemon's state, which a test can fill.
//!
//! It is mounted in a mount namespace of the test's thread, which the daemon inherits; the mount goes
//! with the last of them. A test with such a disk must therefore stay on one thread.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{own_mounts, run};
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
        let daemon = builder.prepare();
        let state = self.path().join("state");
        fs::create_dir(&state).unwrap();
        std::os::unix::fs::symlink(state, daemon.state_dir()).unwrap();
        daemon
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        for size in [1 << 20, 1 << 12, 1] {
            let mut filler = OpenOptions::new()
                .create(true)
                .append(true)
                .open(self.filler())
                .unwrap();
            let block = vec![0x55; size];
            loop {
                match filler.write(&block) {
                    Ok(written) if written > 0 => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    other => panic!("filling the disk: {other:?}"),
                }
            }
        }
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
