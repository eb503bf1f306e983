//! The task that a process belongs to.
//!
//! Three things name the task of a process. They are asked in this order, and the first answer counts:
//!
//! | asked | sure? |
//! | --- | --- |
//! | its parents, up to a shim | yes: a process cannot choose its parents, and orphans go to the shim |
//! | its cgroup | a process may move to the cgroup of another task of the same user |
//! | its marks | a process may set any environment tag, and a lower limit |
//!
//! A process has no parent that leads to its shim if it has entered a PID namespace that was there
//! before. One call reads a few files of /proc and looks for no other process.

use std::{
    ffi::OsStr,
    fs, io,
    os::fd::{AsFd, OwnedFd},
    path::{Component, Path},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{pidfd_open, stat, sweep::Marks};
use crate::{
    process::{
        containment::{self, ChosenContainment},
        shim::ShimProcess,
    },
    task::{TaskId, TaskUid},
};

/// The longest way from a process to its shim.
pub(super) const MOST_PARENTS: usize = 4096;
/// The number of times that a walk begins again, because a process on the way has ended.
pub(super) const WALKS: usize = 8;

/// A process that cannot be mistaken for a later one with the same pid.
#[derive(Debug)]
pub(crate) struct PinnedProcess {
    pid: i32,
    pidfd: OwnedFd,
}

impl PinnedProcess {
    /// Pins the process that has this pid now.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let pidfd = pidfd_open(pid)?;
        Ok(Self { pid, pidfd })
    }

    pub(super) fn from_parts(pid: i32, pidfd: OwnedFd) -> Self {
        Self { pid, pidfd }
    }

    pub(super) fn pid(&self) -> i32 {
        self.pid
    }

    /// True until its last thread has ended. What was read of its pid before is its own then.
    pub(super) fn is_alive(&self) -> bool {
        let mut polls = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut polls, PollTimeout::ZERO), Ok(0))
    }
}

/// A live task, by what its processes are recognised by; its cgroup is known by its id. A command that
/// looks whether a task is ready is known as that task, with the uid and the shim of its own.
#[derive(Debug, Clone)]
pub(crate) struct KnownTask {
    pub(crate) id: TaskId,
    pub(crate) uid: TaskUid,
    pub(crate) shim: Option<ShimProcess>,
}

/// The task of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    Task(TaskId),
    /// Nothing about the process names a live task.
    None,
    /// The process has ended, or cannot be read.
    Unknown,
}

/// Finds the task of a process among the live ones.
pub(crate) fn owner(
    process: &PinnedProcess,
    tasks: &[KnownTask],
    containment: &ChosenContainment,
) -> Owner {
    let pid = process.pid();
    let by_parents = by_parents(pid, tasks);
    let found = match &by_parents {
        Descent::FromShim(id) => Some(id.clone()),
        Descent::FromNone | Descent::Unknown => {
            by_cgroup(pid, tasks, containment).or_else(|| by_marks(pid, tasks))
        }
    };
    match found {
        _ if !process.is_alive() => Owner::Unknown,
        Some(id) => Owner::Task(id),
        None if by_parents == Descent::Unknown => Owner::Unknown,
        None => Owner::None,
    }
}

/// The end of the way from a process to its ancestors.
#[derive(Debug, PartialEq, Eq)]
enum Descent {
    FromShim(TaskId),
    FromNone,
    Unknown,
}

fn by_parents(pid: i32, tasks: &[KnownTask]) -> Descent {
    let walks = (0..WALKS).filter_map(|_| walk_up(pid, tasks));
    walks.into_iter().next().unwrap_or(Descent::Unknown)
}

/// Goes from parent to parent; `None` if one has ended on the way. A parent is read between two looks at
/// its child that both name it, so its pid is not another process's.
fn walk_up(pid: i32, tasks: &[KnownTask]) -> Option<Descent> {
    let mut child = pid;
    let mut parent = stat(child).ok()?.parent_pid;
    for _ in 0..MOST_PARENTS {
        // The first process, and one whose parent is outside of this PID namespace.
        if parent == 0 {
            return Some(Descent::FromNone);
        }
        let above = stat(parent).ok()?;
        if stat(child).ok()?.parent_pid != parent {
            return None;
        }
        let is_it = |shim: ShimProcess| (shim.pid, shim.start_ticks) == (parent, above.start_ticks);
        if let Some(task) = tasks.iter().find(|task| task.shim.is_some_and(is_it)) {
            return Some(Descent::FromShim(task.id.clone()));
        }
        (child, parent) = (parent, above.parent_pid);
    }
    Some(Descent::Unknown)
}

/// The live task in whose cgroup, or below it, the process is.
fn by_cgroup(pid: i32, tasks: &[KnownTask], containment: &ChosenContainment) -> Option<TaskId> {
    let id = cgroup_task(pid, containment)?;
    tasks.iter().any(|task| task.id == id).then_some(id)
}

/// The task in whose cgroup, or below it, the process is, whether it is live or not.
pub(super) fn cgroup_task(pid: i32, containment: &ChosenContainment) -> Option<TaskId> {
    let ChosenContainment::Cgroup { root } = containment else {
        return None;
    };
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    containment::task_of(leaf_below(root.file_name()?, Path::new(path))?)
}

/// The name of the leaf in a path that leads through the cgroup of all tasks, which is unique on the
/// machine. The path itself depends on the mount and on the cgroup namespace.
fn leaf_below<'a>(root: &OsStr, path: &'a Path) -> Option<&'a str> {
    let parts: Vec<_> = path.components().map(Component::as_os_str).collect();
    // The innermost one: the server itself may run in a task.
    let at = parts.iter().rposition(|part| *part == root)?;
    parts.get(at + 1)?.to_str()
}

fn by_marks(pid: i32, tasks: &[KnownTask]) -> Option<TaskId> {
    let uid = Marks::of(pid).task_among(tasks.iter().map(|task| task.uid))?;
    let task = tasks.iter().find(|task| task.uid == uid);
    task.map(|task| task.id.clone())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
