//! A disk that fails while it is in use, and is read-only from then on.
//!
//! It is an ext4 in a file. It fails as a real disk does: the kernel is told of an error in it, and
//! refuses all further writes. Only a new mount makes it writable again.

use std::{
    fs::{self, File},
    process::Command,
};

use super::{FileSystem, ImageDisk, image::text, run};
use crate::Daemon;

/// A file system in a file.
#[derive(Debug)]
pub struct FailingDisk(ImageDisk);

impl FailingDisk {
    /// Mounts one of this many MiB. Returns `None`, after reporting a skip, where that is impossible.
    pub fn mount(mebibytes: u64) -> Option<Self> {
        ImageDisk::mount(FileSystem::Ext4 { block: 4096 }, mebibytes).map(Self)
    }

    /// Prepares a daemon that keeps its state here.
    pub fn daemon(&self, builder: crate::daemon::Builder) -> Daemon {
        self.0.daemon(builder)
    }

    /// Writes everything out, then makes the kernel see an error.
    pub fn fail(&self) {
        let path = self.0.path();
        run("sync", &["--file-system", text(&path)]);
        let source = Command::new("findmnt")
            .args(["--noheadings", "--output", "SOURCE"])
            .arg(&path)
            .output()
            .unwrap();
        let source = String::from_utf8(source.stdout).unwrap();
        let name = source.trim().strip_prefix("/dev/").unwrap();
        assert!(name.starts_with("loop"), "{name} is not a loop device");
        fs::write(format!("/sys/fs/ext4/{name}/trigger_fs_error"), "1").unwrap();
        assert!(File::create(path.join("probe")).is_err());
    }

    /// Mounts it again, as after a repair, once no file of it is open.
    pub fn repair(&self) {
        self.0.remount();
    }
}
