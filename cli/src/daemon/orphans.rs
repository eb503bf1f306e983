//! Process trees of this user whose server is gone: found, and ended on request.
//!
//! A shim outlives its server so that the next one takes over. If the state directory is deleted, no
//! server can, and the tree would run for ever. Paths are read as the process itself sees them, below
//! `/proc/PID/root`: a directory in a container is not deleted because it is missing here.

mod end;
mod proc_table;

use std::{
    fs::File,
    io::ErrorKind,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
};

use nix::fcntl::{Flock, FlockArg};

pub(crate) use end::end;
pub(crate) use proc_table::{ProcTable, Process};

/// A tree without a server.
#[derive(Debug)]
pub(crate) struct Orphan {
    /// The shim, or the first process of a tree that has none.
    pub(crate) root: Process,
    pub(crate) cause: Cause,
    /// The other processes.
    pub(crate) tree: Vec<Process>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The shim's state directory is deleted.
    Deleted(PathBuf),
    /// No server serves the shim's state directory; the next one takes the task over.
    NotServed(PathBuf),
    /// The tree has no shim, and nothing answers at the address that it was given.
    NoShim(String),
}

/// The trees without a server.
pub(crate) fn find(table: &ProcTable) -> Vec<Orphan> {
    let shims: Vec<&Process> = table.processes().filter(|one| one.is_busy_shim()).collect();
    let supervised = |one: &Process| shims.iter().any(|shim| table.is_below(one, shim));
    let with_shim = shims.iter().filter_map(|shim| {
        // The server that has started it runs, though its directory may have been moved or deleted.
        if table.parent_of(shim).is_some_and(Process::is_server) {
            return None;
        }
        let cause = cause_of(shim)?;
        Some(orphan(table, shim, cause))
    });
    let tagged = table
        .processes()
        .filter(|one| one.tag().is_some() && !supervised(one));
    let tops = tagged.filter(|one| {
        let parent = table.parent_of(one);
        parent.is_none_or(|parent| parent.tag() != one.tag())
    });
    let without_shim = tops.filter_map(|top| {
        let address = top
            .variable("HEELER_ADDR")
            .filter(|address| is_unanswered(top, address))?;
        Some(orphan(table, top, Cause::NoShim(address)))
    });
    with_shim.chain(without_shim).collect()
}

fn orphan(table: &ProcTable, root: &Process, cause: Cause) -> Orphan {
    let below = table.processes().filter(|one| table.is_below(one, root));
    Orphan {
        root: root.clone(),
        cause,
        tree: below.cloned().collect(),
    }
}

/// The reason why a shim has no server; none if it has one, or if that cannot be known.
fn cause_of(shim: &Process) -> Option<Cause> {
    let state = shim.state_dir()?;
    match is_served(&shim.path(&state)) {
        Ok(true) => None,
        Ok(false) => Some(Cause::NotServed(state)),
        Err(ErrorKind::NotFound) => Some(Cause::Deleted(state)),
        Err(_) => None,
    }
}

/// Returns whether a server has the lock of a state directory.
pub(crate) fn is_served(state: &Path) -> Result<bool, ErrorKind> {
    let lock = File::open(state).map_err(|error| error.kind())?;
    // Given back at once; a server that starts in this moment tries again.
    match Flock::lock(lock, FlockArg::LockSharedNonblock) {
        Ok(_) => Ok(false),
        Err(_) => Ok(true),
    }
}

/// Returns whether the socket at this address has no server.
fn is_unanswered(process: &Process, address: &str) -> bool {
    let Some(path) = address.strip_prefix("unix:") else {
        return false;
    };
    UnixStream::connect(process.path(Path::new(path))).is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::ConnectionRefused
        )
    })
}
