//! A disk that is soon full: a small file system of its own, for a daemon's state.
//!
//! It is mounted in a mount namespace of the test's thread, which the daemon is started in: when the
//! last of them ends, however it ends, the mount is gone. So a test with such a disk has to stay on
//! one thread.

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{own_mounts, run};
use crate::Daemon;

/// A file system with room for little.
#[derive(Debug)]
pub struct SmallDisk {
    mount: TempDir,
}

impl SmallDisk {
    /// One with room for this many MiB; `None`, and said so, where the user may not mount.
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

    /// A daemon, not started yet, that keeps its state here.
    pub fn daemon(&self, builder: crate::daemon::Builder) -> Daemon {
        let daemon = builder.prepare();
        let state = self.path().join("state");
        fs::create_dir(&state).unwrap();
        std::os::unix::fs::symlink(state, daemon.state_dir()).unwrap();
        daemon
    }

    /// Leaves not one byte of space.
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

    /// Gives the space back.
    pub fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Whether it can be written to from now on; not to be called while a file is open for writing.
    pub fn remount(&self, access: &str) {
        let target = self.path();
        let options = format!("remount,{access}");
        let target = target.to_str().expect("UTF-8");
        run("mount", &["-o", &options, target]);
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        self.mount.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // So that the directory below can be removed; the namespace would take the mount with it.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}
