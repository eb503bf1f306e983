//! Which case it is, when no shim is there to say: a pure function of what was seen. No I/O, no
//! clock; who looks and who acts is `resume` for live tasks and `leftovers` for files without one.
//!
//! What was written down comes first, since it stays true; then who is alive; then what boot it was.

use crate::{
    journal::Memory,
    process::{
        BootId,
        task_file::{LeaderExit, Records, Stage, Start, TreeEnd},
    },
    task::TaskUid,
};

/// What was seen of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) file: Trace,
    pub(super) tree: Remains,
}

/// What is where the task's file should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trace {
    /// Something that is no file.
    NotAFile,
    /// A file that says it is another task's.
    AnotherTasks,
    /// Its own, as far as the file can say.
    Own {
        lock: Lock,
        boot: Boot,
        records: Box<Records>,
    },
}

/// Whether a living process, which is the shim, has the file locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    Held,
    Free,
}

/// The boot of which a file's records speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boot {
    This,
    Another,
    /// The record that would say so is not there, or cannot be read.
    Unknown,
}

/// Who is left of a tree, looked for without its shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remains {
    Unsought,
    Nobody,
    Somebody,
}

/// Whether the journal knows that the leader ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Birth {
    Known,
    Unknown,
}

/// What has become of a live task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// Its end is on record.
    Ended {
        end: TreeEnd,
        leader: Option<LeaderExit>,
    },
    /// That it could not be started is on record.
    StartFailed { stage: Stage, errno: i32 },
    /// Its shim lives.
    ShimAlive,
    /// It was meant to begin, and never will.
    NeverBegan(Hindrance),
    /// Nobody watches it, and some of it lives.
    TreeAlive {
        leader: Option<LeaderExit>,
        loss: Loss,
    },
    /// Nobody is left of it, and nobody saw the end.
    NothingLeft {
        leader: Option<LeaderExit>,
        loss: Loss,
    },
    /// It was running when the machine went down.
    AnotherBoot { leader: Option<LeaderExit> },
}

/// Why a task never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hindrance {
    /// Its shim had not come to it, and the place is taken now.
    Forestalled,
    /// The place of its file was taken by something else.
    PlaceTaken,
}

/// How supervision was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Loss {
    ShimDied,
    FileGone,
    FileOfAnother,
    NoFile,
}

/// What a task file is that belongs to no task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leftover {
    /// What a Remove did not come to delete, or a file in which there is nothing.
    Worthless,
    /// A task's file, the task unknown and not alive.
    Unknown,
    /// The same, with a shim that lives.
    ShimAlive(TaskUid),
    /// The same, and it does not say which task's: it cannot be called.
    ShimNameless,
    /// The same, with a shim that is gone and a tree that is not.
    TreeAlive,
    /// No file at all.
    NotAFile,
}

impl Boot {
    pub(super) fn of(records: &Records, current: BootId) -> Self {
        match records.identity.whole() {
            Some(identity) if identity.boot_id == current.0 => Self::This,
            Some(_) => Self::Another,
            None => Self::Unknown,
        }
    }
}

/// The case of a live task; `None` if its tree has to be sought first.
pub(super) fn classify(birth: Birth, seen: &Seen) -> Option<Case> {
    match &seen.file {
        Trace::NotAFile => without_file(birth, seen.tree, Loss::NoFile),
        Trace::AnotherTasks => without_file(birth, seen.tree, Loss::FileOfAnother),
        Trace::Own {
            lock,
            boot,
            records,
        } => with_file(birth, *lock, *boot, records, seen.tree),
    }
}

fn with_file(
    birth: Birth,
    lock: Lock,
    boot: Boot,
    records: &Records,
    tree: Remains,
) -> Option<Case> {
    let leader = records.leader_exit.whole();
    if let Some(Start::Failed { stage, errno }) = records.start.whole() {
        return Some(Case::StartFailed { stage, errno });
    }
    if let Some(end) = records.tree_end.whole() {
        return Some(Case::Ended { end, leader });
    }
    match (lock, boot, birth) {
        (Lock::Held, _, _) => Some(Case::ShimAlive),
        (Lock::Free, Boot::Another, _) => Some(Case::AnotherBoot { leader }),
        (Lock::Free, Boot::This | Boot::Unknown, birth) if records.are_blank() => match birth {
            // Who a shim is stands in its file before it runs anything.
            Birth::Unknown => Some(Case::NeverBegan(Hindrance::Forestalled)),
            Birth::Known => unwatched(tree, leader, Loss::FileGone),
        },
        (Lock::Free, Boot::This | Boot::Unknown, _) => unwatched(tree, leader, Loss::ShimDied),
    }
}

/// A shim that finds something in the place of its file starts nothing; but it may have been put
/// there since.
fn without_file(birth: Birth, tree: Remains, loss: Loss) -> Option<Case> {
    match (birth, tree) {
        (Birth::Unknown, Remains::Nobody) => Some(Case::NeverBegan(Hindrance::PlaceTaken)),
        (_, tree) => unwatched(tree, None, loss),
    }
}

fn unwatched(tree: Remains, leader: Option<LeaderExit>, loss: Loss) -> Option<Case> {
    match tree {
        Remains::Unsought => None,
        Remains::Nobody => Some(Case::NothingLeft { leader, loss }),
        Remains::Somebody => Some(Case::TreeAlive { leader, loss }),
    }
}

/// What a file is that no task known to the journal has; `None` if its tree has to be sought first.
pub(super) fn leftover(memory: Memory, seen: &Seen) -> Option<Leftover> {
    let Trace::Own {
        lock,
        boot,
        records,
    } = &seen.file
    else {
        return Some(Leftover::NotAFile);
    };
    let over = records.tree_end.whole().is_some()
        || matches!(records.start.whole(), Some(Start::Failed { .. }));
    match (memory, lock) {
        (Memory::Removed, Lock::Free) => Some(Leftover::Worthless),
        (Memory::Removed, Lock::Held) if over => Some(Leftover::Worthless),
        (Memory::None, Lock::Free) if records.are_blank() => Some(Leftover::Worthless),
        (Memory::None, _) if over => Some(Leftover::Unknown),
        (_, Lock::Held) => Some(match records.identity.whole() {
            Some(identity) => {
                Leftover::ShimAlive(TaskUid(uuid::Uuid::from_bytes(identity.task_uid)))
            }
            None => Leftover::ShimNameless,
        }),
        (Memory::None, Lock::Free) => match (boot, seen.tree) {
            (Boot::Another, _) | (_, Remains::Nobody) => Some(Leftover::Unknown),
            (Boot::This | Boot::Unknown, Remains::Unsought) => None,
            (Boot::This | Boot::Unknown, Remains::Somebody) => Some(Leftover::TreeAlive),
        },
    }
}

#[cfg(test)]
mod tests;
