//! Disks for a daemon's state that are full or fail, and the files on a disk.

use std::path::{Path, PathBuf};

mod failing;
mod mount;
mod small;

pub use failing::FailingDisk;
pub(crate) use mount::{own_mounts, run};
pub use small::SmallDisk;

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
