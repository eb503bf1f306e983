//! Space on disk that only the journal can use: blocks behind the end of the WAL, allocated before they
//! are needed.
//!
//! ```text
//! WAL: | commits, old and new | reserve, grows with the number of live tasks | step |
//!                             ^ length of the file                           ^ allocated
//! ```
//!
//! While the reserve is whole, everything may be written. If it cannot be made whole, the disk is full:
//! then only what stops, ends or removes a task is written, into the reserve. It is made whole again as
//! soon as there is space, because each write tries, and the writer thread does. The file keeps its
//! blocks when SQLite begins the WAL anew, and when the server ends.
//!
//! The index of the WAL needs space, too: 32 KiB for each 4,096 frames.

use std::{
    fs::File,
    io::{self, ErrorKind},
    ops::Range,
    os::fd::IntoRawFd,
    path::Path,
};

use crate::{journal::file, task::EventKind};

/// Allocates the blocks of a part of a file, and leaves the length of the file as it is.
pub(crate) type Allocate = fn(&File, Range<u64>) -> io::Result<()>;

/// Space for removals, and for upkeep that cannot wait.
const FLOOR: u64 = 2 << 20;
/// The cost of a stop and of an end, if each has a commit of its own: two pages and six, with their
/// share of pages that split.
const PER_TASK: u64 = 48 << 10;
/// The most that is reserved. More tasks than that are stopped by calls that share commits; where they
/// are not, the last ones are stopped without a record.
const CEILING: u64 = 32 << 20;
/// The space that is allocated beyond the reserve, so that few commits have to allocate.
const STEP: u64 = 1 << 20;

/// Bytes of a frame of the WAL, and the part of the index that its frames need.
const FRAME: u64 = 4096 + 24;
const INDEX_PART: u64 = 32 << 10;
const FRAMES_OF_INDEX_PART: u64 = 4096;

/// The space for a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Space {
    /// The reserve is whole, or there is none: a write that fails has found out by itself.
    Free,
    /// The disk is full, except for the reserve.
    ReserveOnly,
}

/// The right of a write to use the reserve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UseOfReserve {
    Allowed,
    Denied,
}

/// The blocks that are allocated for the WAL and its index.
#[derive(Debug)]
pub(super) struct Reserve {
    /// Both stay open: closing a descriptor of the index would drop SQLite's locks on it.
    wal: File,
    index: File,
    allocate: Allocate,
    /// The length of the WAL when it was last looked at.
    length: u64,
    /// The ends of the allocated parts.
    allocated: u64,
    index_allocated: u64,
    space: Space,
}

impl UseOfReserve {
    /// Allowed for facts that stop, end or remove a task, or follow from its start. Denied for facts that
    /// begin something, and for those that may come any number of times.
    pub(super) fn of(kind: EventKind) -> Self {
        match kind {
            EventKind::Created
            | EventKind::Admitted
            | EventKind::Restarting
            | EventKind::Stale
            | EventKind::Active
            | EventKind::Matched
            | EventKind::Updated
            | EventKind::NeedsInput
            | EventKind::Progress => Self::Denied,
            EventKind::Started
            | EventKind::Restarted
            | EventKind::Stopping
            | EventKind::LeaderExited
            | EventKind::Detached
            | EventKind::Ready
            | EventKind::NotReady
            | EventKind::KillOverdue
            | EventKind::OutputLimit
            | EventKind::Ended
            | EventKind::Removed => Self::Allowed,
        }
    }
}

impl Reserve {
    /// Begins to keep a reserve for the journal in this file. Fails where the file system cannot
    /// allocate ahead.
    pub(super) fn new(journal: &Path, allocate: Allocate, live: usize) -> io::Result<Self> {
        let open = |path| File::options().read(true).write(true).open(path);
        let mut reserve = Self {
            wal: open(file::wal(journal))?,
            index: open(file::wal_index(journal))?,
            allocate,
            length: 0,
            allocated: 0,
            index_allocated: 0,
            space: Space::Free,
        };
        match reserve.extend(live) {
            Err(error) if !is_full(&error) => {
                let _stays_open = reserve.index.into_raw_fd();
                Err(error)
            }
            Ok(()) | Err(_) => Ok(reserve),
        }
    }

    /// The number of bytes that are reserved for this many live tasks.
    pub(super) fn size(live: usize) -> u64 {
        let tasks = u64::try_from(live).unwrap_or(u64::MAX);
        FLOOR
            .saturating_add(tasks.saturating_mul(PER_TASK))
            .min(CEILING)
    }

    pub(super) fn space(&self) -> Space {
        self.space
    }

    /// Makes the reserve whole, if it is not, and returns the space for writes.
    pub(super) fn secure(&mut self, live: usize) -> Space {
        // A disk that fails for another reason fails the write, too.
        let space = match self.extend(live) {
            Err(error) if is_full(&error) => Space::ReserveOnly,
            Ok(()) | Err(_) => Space::Free,
        };
        match (self.space, space) {
            (Space::Free, Space::ReserveOnly) => {
                tracing::error!(
                    "the disk is full: no task can be started, only stopped and removed"
                );
            }
            (Space::ReserveOnly, Space::Free) => tracing::info!("the disk has space again"),
            (Space::Free, Space::Free) | (Space::ReserveOnly, Space::ReserveOnly) => {}
        }
        self.space = space;
        space
    }

    fn extend(&mut self, live: usize) -> io::Result<()> {
        let length = self.wal.metadata()?.len();
        if length < self.length {
            // SQLite has cut the file, and with it what was allocated behind it.
            self.allocated = length;
        }
        self.length = length;
        let wanted = length + Self::size(live);
        if self.allocated >= wanted {
            return Ok(());
        }
        self.extend_index(wanted)?;
        let step = (self.allocate)(&self.wal, self.allocated..wanted + STEP);
        self.allocated = match step {
            Ok(()) => wanted + STEP,
            Err(_) => {
                (self.allocate)(&self.wal, self.allocated..wanted)?;
                wanted
            }
        };
        Ok(())
    }

    /// Allocates the index for a WAL of this length and a step.
    fn extend_index(&mut self, length: u64) -> io::Result<()> {
        let frames = (length + STEP).div_ceil(FRAME);
        let wanted = (frames / FRAMES_OF_INDEX_PART + 1) * INDEX_PART;
        if wanted > self.index_allocated {
            (self.allocate)(&self.index, self.index_allocated..wanted)?;
            self.index_allocated = wanted;
        }
        Ok(())
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::{journal::tests, process::allocate};

    const LOOKS: usize = 100;

    fn allocated(journal: &Path) -> u64 {
        let wal = std::fs::metadata(file::wal(journal)).unwrap();
        wal.blocks() * 512 - wal.len().min(wal.blocks() * 512)
    }

    /// O14
    #[tokio::test]
    async fn the_reserve_is_kept_ahead_of_the_wal_and_across_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let path = file::path(dir.path());
        let journal = tests::open(dir.path());
        if let Err(error) = journal.keep_reserve(allocate) {
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            return;
        }
        for _ in 0..100 {
            tests::finish_one(&journal).await;
            assert!(allocated(&path) >= Reserve::size(0) - 64 * FRAME);
        }
        journal.close().await.unwrap();
        drop(journal);
        let wal = std::fs::metadata(file::wal(&path)).unwrap();
        assert!(wal.blocks() * 512 >= Reserve::size(0), "{wal:?}");
        let journal = tests::open(dir.path());
        journal.keep_reserve(allocate).unwrap();
        tests::finish_one(&journal).await;
        assert!(allocated(&path) >= Reserve::size(0) - 64 * FRAME);
    }

    /// The lock that SQLite holds on its index of the WAL from the first use to the last. Locks on other
    /// bytes come and go with each transaction. A look can miss a lock while others come and go.
    fn index_is_locked(journal: &Path) -> bool {
        let index = std::fs::metadata(file::wal_index(journal)).unwrap();
        let lock = format!(":{} 128 128", index.ino());
        let is_listed = || {
            let locks = std::fs::read_to_string("/proc/locks").unwrap();
            locks.lines().any(|line| line.trim_end().ends_with(&lock))
        };
        (0..LOOKS).any(|_| is_listed())
    }

    /// O14, R4: without it another program may take the index for unused, and begin it anew.
    #[tokio::test]
    async fn sqlite_keeps_its_lock_where_no_space_can_be_allocated_ahead() {
        let dir = tempfile::tempdir().unwrap();
        let path = file::path(dir.path());
        let journal = tests::open(dir.path());
        tests::finish_one(&journal).await;
        assert!(index_is_locked(&path));
        let refused = journal.keep_reserve(|_, _| Err(ErrorKind::Unsupported.into()));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::Unsupported);
        assert!(index_is_locked(&path));
    }

    /// O14
    #[test]
    fn the_reserve_grows_with_the_live_tasks_up_to_a_limit() {
        assert_eq!(Reserve::size(0), FLOOR);
        assert_eq!(Reserve::size(100), FLOOR + 100 * PER_TASK);
        assert_eq!(Reserve::size(usize::MAX), CEILING);
    }

    /// O14: the file was cut, and with it the blocks behind it.
    #[test]
    fn a_wal_that_was_cut_is_allocated_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = file::path(dir.path());
        let wal = File::create(file::wal(&path)).unwrap();
        File::create(file::wal_index(&path)).unwrap();
        wal.set_len(1 << 20).unwrap();
        let Ok(mut reserve) = Reserve::new(&path, allocate, 0) else {
            return;
        };
        wal.set_len(4096).unwrap();
        assert_eq!(reserve.secure(0), Space::Free);
        assert!(wal.metadata().unwrap().blocks() * 512 >= Reserve::size(0));
    }

    /// O14
    #[test]
    fn a_full_disk_denies_the_reserve_to_what_starts_something() {
        let dir = tempfile::tempdir().unwrap();
        let path = file::path(dir.path());
        let wal = File::create(file::wal(&path)).unwrap();
        File::create(file::wal_index(&path)).unwrap();
        let full: Allocate = |_, _| Err(ErrorKind::StorageFull.into());
        let mut reserve = Reserve::new(&path, full, 0).unwrap();
        assert_eq!(reserve.secure(0), Space::ReserveOnly);
        reserve.allocate = |_, _| Ok(());
        assert_eq!(reserve.secure(0), Space::Free);
        reserve.allocate = full;
        wal.set_len(STEP / 2).unwrap();
        assert_eq!(reserve.secure(0), Space::Free, "the step is left");
        wal.set_len(STEP + 1).unwrap();
        assert_eq!(reserve.secure(0), Space::ReserveOnly);
        let unsupported: Allocate = |_, _| Err(ErrorKind::Unsupported.into());
        assert!(Reserve::new(&path, unsupported, 0).is_err());
    }
}
