//! The marks of a task's processes: the environment tag and the limit tag.
//!
//! Both are inherited by every process. The environment tag is lost when a program clears or overwrites
//! its environment, and cannot be read from a process that has made itself unreadable. The limit tag is
//! lost when a process lowers the limit on file locks, and can be read from every process.

use std::{fs, os::unix::fs::MetadataExt, ptr};

use heeler_shim::limit_tag::{LimitTag, Limits};
use nix::{errno::Errno, libc};

use super::super::procfs::{self, BUFFER, read_beginning};
use crate::{process::launch::ENVIRONMENT_TAG, task::TaskUid};

/// The marks that the processes of one task have.
#[derive(Debug, Clone, Copy)]
pub(super) struct TaskMarks {
    uid: TaskUid,
    limit: LimitTag,
}

impl TaskMarks {
    pub(super) fn of(uid: TaskUid) -> Self {
        let limit = LimitTag::of(*uid.as_bytes());
        Self { uid, limit }
    }

    /// False for the nil id, which stands for no task: a shortened tag of it may be any power of two.
    fn is_of_a_task(&self) -> bool {
        *self.uid.as_bytes() != [0; 16]
    }

    /// Returns whether a process has the limit tag and this process may read it by a system call.
    pub(super) fn limit_tag_is_on(&self, pid: i32) -> bool {
        self.is_of_a_task() && limits_by_call(pid).is_ok_and(|limits| self.limit.is_on(limits))
    }
}

/// The marks that one process has.
#[derive(Debug)]
pub(in crate::process::tree) struct Marks {
    limits: Option<Limits>,
    /// One, unless the environment was changed.
    uids: Vec<TaskUid>,
}

impl Marks {
    /// Reads both tags: a process may have changed one of them.
    pub(in crate::process::tree) fn of(pid: i32) -> Self {
        Self {
            uids: environment_tags(pid),
            ..Self::limit_of(pid)
        }
    }

    /// Reads the limit tag alone.
    pub(super) fn limit_of(pid: i32) -> Self {
        Self {
            limits: limits(pid),
            uids: Vec::new(),
        }
    }

    /// Returns whether the process may be of a task.
    pub(in crate::process::tree) fn are_there(&self) -> bool {
        !self.uids.is_empty() || self.limits.is_some_and(Limits::may_be_tagged)
    }

    /// Returns the task among these that the process is of. Of two nested ones it is the inner one, whose
    /// tag is the soft limit; the environment decides last, since a program can change it.
    pub(in crate::process::tree) fn task_among(
        &self,
        tasks: impl Iterator<Item = TaskUid> + Clone,
    ) -> Option<TaskUid> {
        let values = self.limits.map(|Limits { soft, hard }| [soft, hard]);
        let tagged = values.into_iter().flatten().find_map(|value| {
            let limits = Limits {
                soft: value,
                hard: value,
            };
            let is_on = |task: &TaskUid| TaskMarks::of(*task).limit.is_on(limits);
            tasks.clone().find(is_on)
        });
        tagged.or_else(|| tasks.clone().find(|task| self.uids.contains(task)))
    }

    pub(super) fn are_of(&self, task: &TaskMarks) -> bool {
        task.is_of_a_task()
            && (self.uids.contains(&task.uid)
                || self.limits.is_some_and(|limits| task.limit.is_on(limits)))
    }
}

/// Returns the limits that may be a tag; `None` if the process is gone.
fn limits(pid: i32) -> Option<Limits> {
    match limits_by_call(pid) {
        Ok(limits) => Some(limits),
        // Another user's process, such as a program that changed its user: the file is for everyone.
        Err(Errno::EPERM) => {
            let mut buffer = [0; BUFFER];
            let text = read_beginning(&format!("/proc/{pid}/limits"), &mut buffer).ok()?;
            Limits::parse(text)
        }
        Err(_) => None,
    }
}

fn limits_by_call(pid: i32) -> Result<Limits, Errno> {
    let mut found = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: no limit is set, and there is room for one.
    let done = unsafe { libc::prlimit(pid, libc::RLIMIT_LOCKS, ptr::null(), &raw mut found) };
    Errno::result(done)?;
    Ok(Limits {
        soft: found.rlim_cur,
        hard: found.rlim_max,
    })
}

/// Returns the tasks whose tag is in the environment of a process; none if that cannot be read.
fn environment_tags(pid: i32) -> Vec<TaskUid> {
    let process = format!("/proc/{pid}");
    match procfs::read_whole(&format!("{process}/environ")) {
        Ok(environ) if !environ.is_empty() => tags_in(&environ),
        // The first thread may have ended before the others, and has no environment then.
        Ok(_) if has_several_threads(&process) => procfs::threads(pid)
            .filter_map(|thread| fs::read(format!("{process}/task/{thread}/environ")).ok())
            .flat_map(|environ| tags_in(&environ))
            .collect(),
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// The directory of a process's threads has two links and one for each thread.
fn has_several_threads(process: &str) -> bool {
    fs::metadata(format!("{process}/task")).is_ok_and(|threads| threads.nlink() > 3)
}

fn tags_in(environ: &[u8]) -> Vec<TaskUid> {
    let uid = |entry: &[u8]| {
        let value = entry
            .strip_prefix(ENVIRONMENT_TAG.as_bytes())?
            .strip_prefix(b"=")?;
        uuid::Uuid::try_parse_ascii(value).ok().map(TaskUid)
    };
    environ.split(|byte| *byte == 0).filter_map(uid).collect()
}
