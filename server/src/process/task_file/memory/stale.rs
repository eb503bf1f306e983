//! The removal of memory directories whose state directory was deleted.
//!
//! A directory is removed only if all of this holds: its name has the form of a memory directory; it is a
//! directory of this user and private; no server has it locked; the state directory that it names does
//! not exist, or is this server's own, which has another memory directory; no live shim has one of its
//! files locked; and it holds memory files only. Anything else, and any error, leaves it alone.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use nix::{
    fcntl::{Flock, FlockArg},
    libc,
};

use super::{
    MemoryDir, PREFIX,
    claimed::{entries, open_dir, remove_state_dir_link, state_dir_of},
};
use crate::{
    process::{own_uid, task_file::open_if_exists},
    task::TaskId,
};

impl MemoryDir {
    /// Removes the memory directories beside `own` whose state directory was deleted, including one that
    /// was at the path of `state_dir` before. The caller holds the lock of `state_dir`. Returns the paths.
    pub fn remove_stale(own: &Path, state_dir: &Path) -> Vec<PathBuf> {
        let (Some(root), Ok(state_dir)) = (own.parent(), fs::canonicalize(state_dir)) else {
            return Vec::new();
        };
        let found = fs::read_dir(root).into_iter().flatten().flatten();
        let candidates = found
            .filter(|entry| entry.file_name().to_str().is_some_and(is_memory_dir_name))
            .map(|entry| entry.path())
            .filter(|path| path != own);
        candidates
            .filter(|path| remove_if_stale(path, &state_dir).unwrap_or(false))
            .collect()
    }
}

fn is_memory_dir_name(name: &str) -> bool {
    let id = name.strip_prefix(PREFIX).unwrap_or_default();
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns whether the directory was removed.
fn remove_if_stale(path: &Path, own_state_dir: &Path) -> io::Result<bool> {
    let dir = open_dir(path)?;
    let found = dir.metadata()?;
    if found.uid() != own_uid() || found.mode() & 0o077 != 0 {
        return Ok(false);
    }
    let Ok(_lock) = Flock::lock(dir, FlockArg::LockExclusiveNonblock) else {
        return Ok(false);
    };
    let names = entries(path)?;
    let is_stale = match state_dir_of(path) {
        Some(state_dir) => state_dir == own_state_dir || is_missing(&state_dir),
        // A server that crashed before it wrote the link has left an empty directory.
        None => names.is_empty(),
    };
    if !is_stale {
        return Ok(false);
    }
    let mut files = Vec::new();
    for name in names {
        let file = path.join(&name);
        let is_task = name
            .to_str()
            .is_some_and(|name| name.parse::<TaskId>().is_ok());
        if !is_task || is_in_use(&file)? {
            return Ok(false);
        }
        files.push(file);
    }
    for file in files {
        fs::remove_file(file)?;
    }
    // The link goes last: a crash before that leaves a directory that is still stale.
    let _ = remove_state_dir_link(path);
    fs::remove_dir(path)?;
    Ok(true)
}

/// True only if the directory is known not to exist: one that cannot be looked at may.
fn is_missing(state_dir: &Path) -> bool {
    fs::symlink_metadata(state_dir).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns whether a live shim writes this file.
fn is_in_use(file: &Path) -> io::Result<bool> {
    let Some(file) = open_if_exists(file, libc::O_NOFOLLOW)? else {
        return Ok(false);
    };
    match Flock::lock(file, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err((_, nix::Error::EWOULDBLOCK)) => Ok(true),
        Err((_, error)) => Err(error.into()),
    }
}
