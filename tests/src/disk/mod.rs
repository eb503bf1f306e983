//! Disks for a daemon's state that are full or fail, and the files on a disk.

use std::{
    fs::{DirBuilder, OpenOptions},
    io::{ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, symlink},
    path::{Path, PathBuf},
};

use crate::{Daemon, daemon::Builder};

mod failing;
mod image;
mod mount;
mod small;

pub use failing::FailingDisk;
pub use image::{FileSystem, ImageDisk};
pub(crate) use mount::{own_mounts, run};
pub use small::SmallDisk;

/// Prepares a daemon that keeps its state on a mounted disk.
fn daemon_on(mount: &Path, builder: Builder) -> Daemon {
    let daemon = builder.prepare();
    let state = mount.join("state");
    DirBuilder::new().mode(0o700).create(&state).unwrap();
    symlink(state, daemon.state_dir()).unwrap();
    daemon
}

/// Appends to a file until its disk is full to the last byte.
fn fill(filler: &Path) {
    for size in [1 << 20, 1 << 12, 1] {
        let mut filler = OpenOptions::new()
            .create(true)
            .append(true)
            .open(filler)
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

/// Every file below a directory.
pub fn files_below(dir: &Path) -> Vec<PathBuf> {
    let mut paths = paths_below(dir);
    paths.retain(|path| !path.is_dir());
    paths
}

/// Every file and directory below a directory.
pub fn paths_below(dir: &Path) -> Vec<PathBuf> {
    let (mut paths, mut rest) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(dir) = rest.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                rest.push(path.clone());
            }
            paths.push(path);
        }
    }
    paths
}
