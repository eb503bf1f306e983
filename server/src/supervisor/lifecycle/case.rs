//! The case of a task without a shim connection: a pure function of what was seen. No I/O, no clock;
//! `task_actor::reconcile` looks and acts for live tasks, `server::leftovers` for files without one.
//!
//! ```text
//!  records ── start failed ──────────────> StartFailed
//!     │    ── end of the tree ───────────> Ended
//!  lock ───── held ──────────────────────> ShimAlive
//!  boot ───── another one ───────────────> AnotherBoot
//!  records ── blank, start not known ────> NeverStarted
//!  processes ─ found ────────────────────> TreeAlive
//!            ─ none ─────────────────────> NothingLeft
//! ```
//!
//! Records decide first, since they stay true; then the living shim; then the boot.

use crate::{
    journal::Memory,
    process::{
        BootId,
        task_file::{Identity, LeaderExit, Records, Stage, Start, TreeEnd},
    },
    task::TaskUid,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct Seen {
    pub(in crate::supervisor) file: FileSeen,
    pub(in crate::supervisor) tree: Tree,
}

/// The state of the path of a task file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) enum FileSeen {
    /// Something other than a file.
    NotAFile,
    /// The identity record names another task.
    OfAnotherTask,
    /// The task's own file, or one without a readable identity.
    Own {
        lock: Lock,
        boot: Boot,
        records: Box<Records>,
    },
}

/// The lock of a task file; only a living shim holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Lock {
    Held,
    Free,
}

/// The boot in which the records of a file were written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Boot {
    This,
    Another,
    /// The identity record is missing or damaged.
    Unknown,
}

/// The processes of a tree, looked for without its shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Tree {
    NotLookedFor,
    Empty,
    Alive,
}

/// True if the journal knows that the leader has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum StartKnown {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Case {
    /// The end of the tree is on record.
    Ended {
        end: TreeEnd,
        leader: Option<LeaderExit>,
    },
    /// A failed start is on record.
    StartFailed {
        stage: Stage,
        errno: i32,
    },
    ShimAlive,
    /// The leader was never started, and will not be.
    NeverStarted(NotStarted),
    /// The shim is gone, and processes of the tree live.
    TreeAlive {
        leader: Option<LeaderExit>,
        loss: Loss,
    },
    /// The shim and the tree are gone without a record of the end.
    NothingLeft {
        leader: Option<LeaderExit>,
        loss: Loss,
    },
    /// The machine was restarted while the task ran.
    AnotherBoot {
        leader: Option<LeaderExit>,
    },
}

/// The reason why a leader was never started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum NotStarted {
    /// The shim had not made its file; the server has claimed the place.
    Prevented,
    /// Something else is in the place of the file.
    PlaceTaken,
}

/// The way in which supervision was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Loss {
    ShimDied,
    FileGone,
    FileOfAnotherTask,
    NotAFile,
}

/// A task file that belongs to no task in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Leftover {
    /// The file of a removed task, or an empty file: to be deleted.
    Deletable,
    /// The file of an unknown task that has ended: to be set aside.
    Unknown,
    /// An unknown task with a living shim.
    ShimAlive(TaskUid),
    /// The same without a readable identity: the shim cannot be reached.
    UnidentifiedShim,
    /// An unknown task whose shim is gone and whose tree lives.
    TreeAlive,
    NotAFile,
}

impl Boot {
    pub(in crate::supervisor) fn of(records: &Records, current: BootId) -> Self {
        match records.identity.whole() {
            Some(identity) if identity.boot_id == current.0 => Self::This,
            Some(_) => Self::Another,
            None => Self::Unknown,
        }
    }
}

impl Tree {
    pub(in crate::supervisor) fn of_size(processes: usize) -> Self {
        match processes {
            0 => Self::Empty,
            _ => Self::Alive,
        }
    }
}

/// The case of a live task; `None` if its processes have to be looked for first.
pub(in crate::supervisor) fn classify(start: StartKnown, seen: &Seen) -> Option<Case> {
    match &seen.file {
        FileSeen::NotAFile => without_file(start, seen.tree, Loss::NotAFile),
        FileSeen::OfAnotherTask => without_file(start, seen.tree, Loss::FileOfAnotherTask),
        FileSeen::Own {
            lock,
            boot,
            records,
        } => with_file(start, *lock, *boot, records, seen.tree),
    }
}

fn with_file(
    start: StartKnown,
    lock: Lock,
    boot: Boot,
    records: &Records,
    tree: Tree,
) -> Option<Case> {
    let leader = records.leader_exit.whole();
    if let Some(Start::Failed { stage, errno }) = records.start.whole() {
        return Some(Case::StartFailed { stage, errno });
    }
    if let Some(end) = records.tree_end.whole() {
        return Some(Case::Ended { end, leader });
    }
    match (lock, boot) {
        (Lock::Held, _) => Some(Case::ShimAlive),
        (Lock::Free, Boot::Another) => Some(Case::AnotherBoot { leader }),
        (Lock::Free, Boot::This | Boot::Unknown) if records.are_blank() => match start {
            // A shim writes its identity before it starts the leader.
            StartKnown::No => Some(Case::NeverStarted(NotStarted::Prevented)),
            StartKnown::Yes => unwatched(tree, leader, Loss::FileGone),
        },
        (Lock::Free, Boot::This | Boot::Unknown) => unwatched(tree, leader, Loss::ShimDied),
    }
}

/// A shim that finds something in the place of its file starts nothing. But the file may have been
/// replaced after the start.
fn without_file(start: StartKnown, tree: Tree, loss: Loss) -> Option<Case> {
    match (start, tree) {
        (StartKnown::No, Tree::Empty) => Some(Case::NeverStarted(NotStarted::PlaceTaken)),
        (StartKnown::Yes | StartKnown::No, tree) => unwatched(tree, None, loss),
    }
}

fn unwatched(tree: Tree, leader: Option<LeaderExit>, loss: Loss) -> Option<Case> {
    match tree {
        Tree::NotLookedFor => None,
        Tree::Empty => Some(Case::NothingLeft { leader, loss }),
        Tree::Alive => Some(Case::TreeAlive { leader, loss }),
    }
}

/// The task of a shim that has recorded the end of its tree and still holds the file. It may be kept for another
/// attempt.
pub(in crate::supervisor) fn kept_shim(seen: &Seen) -> Option<TaskUid> {
    match &seen.file {
        FileSeen::Own {
            lock: Lock::Held,
            records,
            ..
        } if records.tree_end.whole().is_some() => records.identity.whole().map(task_uid),
        FileSeen::Own { .. } | FileSeen::NotAFile | FileSeen::OfAnotherTask => None,
    }
}

fn task_uid(identity: Identity) -> TaskUid {
    TaskUid(uuid::Uuid::from_bytes(identity.task_uid))
}

/// The kind of a file without a task; `None` if its processes have to be looked for first.
pub(in crate::supervisor) fn leftover(memory: Memory, seen: &Seen) -> Option<Leftover> {
    let FileSeen::Own {
        lock,
        boot,
        records,
    } = &seen.file
    else {
        return Some(Leftover::NotAFile);
    };
    let has_ended = records.tree_end.whole().is_some()
        || matches!(records.start.whole(), Some(Start::Failed { .. }));
    match (memory, lock) {
        (Memory::Removed, Lock::Free) => Some(Leftover::Deletable),
        (Memory::Removed, Lock::Held) if has_ended => Some(Leftover::Deletable),
        (Memory::None, Lock::Free) if records.are_blank() => Some(Leftover::Deletable),
        (Memory::None, _) if has_ended => Some(Leftover::Unknown),
        (_, Lock::Held) => Some(match records.identity.whole() {
            Some(identity) => Leftover::ShimAlive(task_uid(identity)),
            None => Leftover::UnidentifiedShim,
        }),
        (Memory::None, Lock::Free) => match (boot, seen.tree) {
            (Boot::Another, _) | (_, Tree::Empty) => Some(Leftover::Unknown),
            (Boot::This | Boot::Unknown, Tree::NotLookedFor) => None,
            (Boot::This | Boot::Unknown, Tree::Alive) => Some(Leftover::TreeAlive),
        },
    }
}

#[cfg(test)]
mod tests;
