//! A disk that fails while it is in use, and is read-only from then on.
//!
//! It is an ext4 in a file, mounted like a [`crate::SmallDisk`] in a mount namespace of the test's
//! thread; its loop device goes with the mount. It fails as a real disk does: the kernel is told of an
//! error in it, and refuses all further writes. Only a new mount makes it writable again.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use super::{own_mounts, run};
use crate::{DEADLINE, Daemon, skipped, waiting::eventually_blocking};

/// A file system in a file.
#[derive(Debug)]
pub struct FailingDisk {
    dir: TempDir,
}

impl FailingDisk {
    /// Mounts one of this many MiB. Returns `None`, after reporting a skip, where that is impossible.
    pub fn mount(mebibytes: u64) -> Option<Self> {
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
        let image = File::create(disk.image()).unwrap();
        image.set_len(mebibytes << 20).unwrap();
        run("mkfs.ext4", &["-q", "-F", text(&disk.image())]);
        disk.mount_image();
        Some(disk)
    }

    /// Prepares a daemon that keeps its state here.
    pub fn daemon(&self, builder: crate::daemon::Builder) -> Daemon {
        let daemon = builder.prepare();
        let state = self.path().join("state");
        fs::create_dir(&state).unwrap();
        fs::set_permissions(&state, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        std::os::unix::fs::symlink(state, daemon.state_dir()).unwrap();
        daemon
    }

    /// Writes everything out, then makes the kernel see an error.
    pub fn fail(&self) {
        run("sync", &["--file-system", text(&self.path())]);
        let source = Command::new("findmnt")
            .args(["--noheadings", "--output", "SOURCE"])
            .arg(self.path())
            .output()
            .unwrap();
        let source = String::from_utf8(source.stdout).unwrap();
        let name = source.trim().strip_prefix("/dev/").unwrap();
        assert!(name.starts_with("loop"), "{name} is not a loop device");
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
        assert!(File::create(self.path().join("probe")).is_err());
    }

    /// Mounts it again, as after a repair, once no file of it is open.
    pub fn repair(&self) {
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

    fn path(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }
}

impl Drop for FailingDisk {
    fn drop(&mut self) {
        // Lets the directory be removed now, before the namespace ends.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(self.path())
            .status();
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}
