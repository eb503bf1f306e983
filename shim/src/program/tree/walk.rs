//! A walk over all descendants of the shim, breadth first.
//!
//! Processes are found by pid and signalled by handle: a pid counts only if the process names the
//! expected parent while a handle pins that parent.

use core::ops::ControlFlow;

use super::{
    pid_set::PidSet,
    processes::{self, ChildSearch},
};
use crate::program::{
    pages::Numbers,
    sys::{Fd, process, signals},
};

/// The number of walks for orphans that became the shim's children during a walk.
const PASSES: usize = 3;
/// The number of processes that may end during a walk. More end only in a fork storm, in which a walk
/// finds nothing that lives on.
const MISSES: usize = 64;
/// The numbers per process in the list.
const WIDTH: usize = 3;

/// A process that was alive.
#[derive(Clone, Copy)]
pub(super) struct Found {
    pid: u32,
    /// Distinguishes it from a later process with the same pid.
    start_ticks: u64,
    /// Its process group.
    pub(super) group: u32,
}

/// The processes found, each after its parent.
pub(super) struct Walk {
    search: ChildSearch,
    list: Numbers,
    len: usize,
    limit: usize,
    listed: PidSet,
    /// The number of processes that ended during the walk, so that their children became the shim's.
    missed: usize,
}

impl Walk {
    /// Finds the live processes, up to a limit; `None` if there is no memory for a list.
    pub(super) fn of_tree(limit: usize, buffer: &mut [u8]) -> Option<Self> {
        let own_pid = process::own_pid();
        let mut walk = Self {
            search: ChildSearch::of_kernel(own_pid),
            list: Numbers::new(WIDTH * limit)?,
            len: 0,
            limit,
            listed: PidSet::new(),
            missed: 0,
        };
        let mut next = 0;
        for _ in 0..PASSES {
            let missed = walk.missed;
            walk.find_children(own_pid, 1, buffer);
            while walk.missed < MISSES
                && let Some(parent) = walk.get(next)
            {
                walk.visit(parent, buffer);
                next += 1;
            }
            if walk.missed == missed {
                break;
            }
        }
        Some(walk)
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&mut self, index: usize) -> Option<Found> {
        if index >= self.len {
            return None;
        }
        match *self.list.items().get(WIDTH * index..WIDTH * (index + 1))? {
            [pid, start_ticks, group] => Some(Found {
                pid: pid as u32,
                start_ticks,
                group: group as u32,
            }),
            _ => None,
        }
    }

    fn push(&mut self, found: Found) {
        let range = WIDTH * self.len..WIDTH * (self.len + 1);
        if !self.listed.contains(found.pid)
            && let Some(free) = self.list.items().get_mut(range)
        {
            free.copy_from_slice(&[
                u64::from(found.pid),
                found.start_ticks,
                u64::from(found.group),
            ]);
            self.listed.insert(found.pid);
            self.len += 1;
        }
    }

    /// Removes the processes behind the first `len`.
    fn truncate(&mut self, len: usize) {
        while self.len > len {
            if let Some(found) = self.get(self.len - 1) {
                self.listed.remove(found.pid);
            }
            self.len -= 1;
        }
    }

    /// Finds the live children of a process whose pid is pinned.
    fn find_children(&mut self, parent: u32, threads: u32, buffer: &mut [u8]) {
        let _ = self.search.children(parent, threads, buffer, |pid| {
            if let Some(stat) = processes::stat(pid)
                && stat.parent == parent
                && !stat.is_dead()
            {
                self.push(Found {
                    pid,
                    start_ticks: stat.start_ticks,
                    group: stat.group,
                });
            }
            if self.len < self.limit {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
    }

    /// Finds the children of a found process.
    fn visit(&mut self, parent: Found, buffer: &mut [u8]) {
        let before = self.len;
        if let Some((handle, threads)) = parent.pin() {
            self.find_children(parent.pid, threads, buffer);
            if signals::send_to_handle(&handle, 0).is_ok() {
                return;
            }
        }
        // It has ended: its children are the shim's by now, and its pid may be reused.
        self.truncate(before);
        self.missed += 1;
    }
}

impl Found {
    /// Opens a handle, if the pid still belongs to the same process.
    pub(super) fn handle(&self) -> Option<Fd> {
        self.pin().map(|(handle, _)| handle)
    }

    /// Returns a handle and the number of threads.
    fn pin(&self) -> Option<(Fd, u32)> {
        let handle = signals::handle(self.pid).ok()?;
        let stat = processes::stat(self.pid)?;
        (stat.start_ticks == self.start_ticks).then_some((handle, stat.threads))
    }
}
