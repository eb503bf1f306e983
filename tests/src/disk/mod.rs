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
    let (mut files, mut rest) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(path) = rest.pop() {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).unwrap().flatten();
            rest.extend(entries.map(|entry| entry.path()));
        } else {
            files.push(path);
        }
    }
    files
}
