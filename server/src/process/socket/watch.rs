//! Notices that a path may lead to another file, without looking at it again and again.

use std::{fs::File, future::pending, io, os::fd::OwnedFd, path::Path, time::Duration};

use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};
use tokio::io::{Interest, unix::AsyncFd};

/// The interval of looks if the kernel does not tell of changes: its limit of watches may be reached.
const LOOK: Duration = Duration::from_secs(2);

/// The events of the file itself: its removal changes its number of links.
const FILE: AddWatchFlags = AddWatchFlags::IN_ATTRIB
    .union(AddWatchFlags::IN_MOVE_SELF)
    .union(AddWatchFlags::IN_DELETE_SELF)
    .union(AddWatchFlags::IN_DONT_FOLLOW);
/// The events of a directory on the path. What happens to other files in it is not reported.
const DIRECTORY: AddWatchFlags = AddWatchFlags::IN_MOVE_SELF.union(AddWatchFlags::IN_DELETE_SELF);

/// A watch on a file and the directories above it.
#[derive(Debug)]
pub(super) struct PathWatch {
    files: Option<AsyncFd<OwnedFd>>,
    /// A file system that is mounted or unmounted above the file changes none of its directories.
    mounts: Option<AsyncFd<OwnedFd>>,
}

impl PathWatch {
    pub(super) fn new(path: &Path) -> Self {
        let files = watch_files(path).inspect_err(|error| {
            let path = path.display();
            tracing::debug!(%path, %error, "cannot watch the socket; looking at it every {LOOK:?}");
        });
        Self {
            files: files.ok(),
            mounts: watch_mounts().ok(),
        }
    }

    /// Waits until something may have changed.
    pub(super) async fn changed(&self) {
        let looked = async {
            match self.files {
                Some(_) => pending().await,
                None => tokio::time::sleep(LOOK).await,
            }
        };
        tokio::select! {
            () = is_ready(self.files.as_ref(), Interest::READABLE) => {}
            () = is_ready(self.mounts.as_ref(), Interest::PRIORITY) => {}
            () = looked => {}
        }
    }
}

fn watch_files(path: &Path) -> io::Result<AsyncFd<OwnedFd>> {
    let files = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK)?;
    match files.add_watch(path, FILE) {
        // The caller sees that it is gone.
        Ok(_) | Err(nix::Error::ENOENT) => {}
        Err(error) => return Err(error.into()),
    }
    for directory in path.ancestors().skip(1) {
        // One that cannot be read cannot be watched either; the socket's own directory can.
        let _ = files.add_watch(directory, DIRECTORY);
    }
    register(files.into(), Interest::READABLE)
}

fn watch_mounts() -> io::Result<AsyncFd<OwnedFd>> {
    let mounts = File::open("/proc/self/mountinfo")?;
    register(mounts.into(), Interest::PRIORITY)
}

fn register(source: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor is open and stays the same until it is dropped with the `AsyncFd`.
    let registered = unsafe { AsyncFd::register_with_interest(source, interest) };
    Ok(registered?)
}

async fn is_ready(source: Option<&AsyncFd<OwnedFd>>, interest: Interest) {
    let ready = match source {
        Some(source) => source.ready(interest).await.is_ok(),
        None => false,
    };
    if !ready {
        pending().await
    }
}
