//! A file system in a file, for a daemon's state: of any kind and block size, and it can be filled.
//!
//! It is mounted like a [`crate::SmallDisk`] in a mount namespace of the test's thread; its loop device
//! goes with the mount.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{daemon_on, fill, own_mounts, run};
use crate::{DEADLINE, Daemon, skipped, waiting::eventually_blocking};

/// The kind of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// With blocks of this many bytes.
    Ext4 { block: u32 },
    /// It cannot allocate space ahead: on a full one nothing at all can be written.
    Ext2,
}

/// A file system in a file.
#[derive(Debug)]
pub struct ImageDisk {
    dir: TempDir,
}

impl ImageDisk {
    /// Mounts one of this many MiB. Returns `None`, after reporting a skip, where that is impossible.
    pub fn mount(kind: FileSystem, mebibytes: u64) -> Option<Self> {
        if !own_mounts() {
            return None;
        }
        if !Path::new("/dev/loop-control").exists() {
            skipped("no loop devices");
            return None;
        }
        let dir = tempfile::Builder::new()
            .prefix("heeler-disk-")
            .tempdir_in("/tmp")
            .unwrap();
        let disk = Self { dir };
        fs::create_dir(disk.path()).unwrap();
        let file = File::create(disk.image()).unwrap();
        file.set_len(mebibytes << 20).unwrap();
        let (program, block) = match kind {
            FileSystem::Ext4 { block } => ("mkfs.ext4", block),
            FileSystem::Ext2 => ("mkfs.ext2", 4096),
        };
        let block = block.to_string();
        // Nothing is set aside for root, who runs this.
        let image = disk.image();
        let args = ["-q", "-F", "-m", "0", "-b", &block, text(&image)];
        run(program, &args);
        disk.mount_image();
        Some(disk)
    }

    /// Prepares a daemon that keeps its state here.
    pub fn daemon(&self, builder: crate::daemon::Builder) -> Daemon {
        daemon_on(&self.path(), builder)
    }

    /// Fills the disk to the last byte.
    pub fn fill(&self) {
        fill(&self.filler());
    }

    /// Frees the space again.
    pub fn free(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Mounts it again, once no file of it is open.
    pub(super) fn remount(&self) {
        let unmount = || Command::new("umount").arg(self.path()).output();
        let unmounted = || unmount().is_ok_and(|output| output.status.success());
        assert!(
            eventually_blocking(DEADLINE, unmounted),
            "the disk is in use"
        );
        self.mount_image();
    }

    fn mount_image(&self) {
        let (image, path) = (self.image(), self.path());
        let options = "loop,errors=remount-ro";
        run("mount", &["-o", options, text(&image), text(&path)]);
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    fn filler(&self) -> PathBuf {
        self.path().join("filler")
    }
}

impl Drop for ImageDisk {
    fn drop(&mut self) {
        // Lets the directory be removed now, before the namespace ends.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
