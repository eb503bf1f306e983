//! The `strays` directory of a state directory: files that belong to no task, and damaged files, kept
//! for a person to look at. Nothing here reads, changes or deletes them.

use std::{
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

/// The directory in which the strays of a state directory are.
pub(crate) fn directory(state_dir: &Path) -> PathBuf {
    state_dir.join("strays")
}

/// Returns an unused path for a stray with this name, and creates the directory. A name that is taken
/// gets a number: `name.2`, `name.3`, …
pub(crate) fn unused_path(state_dir: &Path, name: &str) -> io::Result<PathBuf> {
    let directory = directory(state_dir);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&directory)?;
    let mut path = directory.join(name);
    let mut number = 1;
    while path.try_exists()? {
        number += 1;
        path = directory.join(format!("{name}.{number}"));
    }
    Ok(path)
}
