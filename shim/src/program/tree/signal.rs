//! Sends a signal, and then SIGCONT, to every process of the tree that can be found.
//!
//! First the tree is walked, to count the processes that are alive when the signal is sent. Then the
//! leader's group is signalled at once, and one by one the descendants that have left it. These are
//! found by pid and signalled by handle: a pid counts only if the process names the expected parent
//! while a handle pins that parent.

use core::ops::ControlFlow;

use super::processes::{self, ChildSearch};
use crate::program::{
    pages::Numbers,
    sys::{Fd, process, signals},
};

/// The most processes found. The rest of a larger tree gets no signal before SIGKILL.
const LIMIT: usize = 4096;
/// The number of walks for orphans that became the shim's children during a walk.
const PASSES: usize = 3;
/// The numbers per process in the list.
const WIDTH: usize = 3;

/// Sends the signal; returns the number of live processes that got it.
pub(crate) fn send(signal: i32, leader: Option<u32>, buffer: &mut [u8]) -> u32 {
    let walk = Numbers::new(WIDTH * LIMIT).map(|list| walk_tree(list, leader, buffer));
    if let Some(group) = leader {
        let _ = signals::send_to_group(group, signal);
        let _ = signals::send_to_group(group, signals::CONTINUE);
    }
    match walk {
        Some(mut found) => (0..found.len)
            .filter(|index| found.signal(*index, signal))
            .count() as u32,
        // No memory for a list: at least the leader was signalled.
        None => u32::from(leader.is_some()),
    }
}

/// A process that was alive.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Found {
    pid: u32,
    /// Distinguishes it from a later process with the same pid.
    start_ticks: u64,
    group: Group,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    /// The leader's process group.
    Leader,
    Other,
}

/// The processes found, in the order of the walk: breadth first.
struct Walk {
    leader: Option<u32>,
    search: ChildSearch,
    list: Numbers,
    len: usize,
    /// A process ended during the walk, so that its children became the shim's.
    missed: bool,
}

fn walk_tree(list: Numbers, leader: Option<u32>, buffer: &mut [u8]) -> Walk {
    let own_pid = process::own_pid();
    let search = ChildSearch::of_kernel(own_pid);
    let mut walk = Walk {
        leader,
        search,
        list,
        len: 0,
        missed: false,
    };
    let mut next = 0;
    for _ in 0..PASSES {
        walk.missed = false;
        walk.find_children(own_pid, 1, buffer);
        while let Some(parent) = walk.get(next) {
            walk.visit(parent, buffer);
            next += 1;
        }
        if !walk.missed {
            break;
        }
    }
    walk
}

impl Walk {
    fn get(&mut self, index: usize) -> Option<Found> {
        if index >= self.len {
            return None;
        }
        match *self.list.items().get(WIDTH * index..WIDTH * (index + 1))? {
            [pid, start_ticks, 0] => Some(Found {
                pid: pid as u32,
                start_ticks,
                group: Group::Leader,
            }),
            [pid, start_ticks, _] => Some(Found {
                pid: pid as u32,
                start_ticks,
                group: Group::Other,
            }),
            _ => None,
        }
    }

    fn push(&mut self, found: Found) {
        let group = match found.group {
            Group::Leader => 0,
            Group::Other => 1,
        };
        let known = (0..self.len).any(|index| self.get(index) == Some(found));
        let range = WIDTH * self.len..WIDTH * (self.len + 1);
        if !known && let Some(free) = self.list.items().get_mut(range) {
            free.copy_from_slice(&[u64::from(found.pid), found.start_ticks, group]);
            self.len += 1;
        }
    }

    /// Finds the live children of a process whose pid is pinned.
    fn find_children(&mut self, parent: u32, threads: u32, buffer: &mut [u8]) {
        let _ = self.search.children(parent, threads, buffer, |pid| {
            if let Some(stat) = processes::stat(pid)
                && stat.parent == parent
                && !stat.is_dead()
            {
                let in_group = self.leader == Some(stat.group);
                let group = if in_group {
                    Group::Leader
                } else {
                    Group::Other
                };
                self.push(Found {
                    pid,
                    start_ticks: stat.start_ticks,
                    group,
                });
            }
            if self.len < LIMIT {
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
        self.len = before;
        self.missed = true;
    }

    /// Signals a process unless its group was; returns whether it got the signal.
    fn signal(&mut self, index: usize, signal: i32) -> bool {
        let Some(found) = self.get(index) else {
            return false;
        };
        match found.group {
            Group::Leader => true,
            Group::Other => found.pin().is_some_and(|(handle, _)| {
                let sent = signals::send_to_handle(&handle, signal).is_ok();
                let _ = signals::send_to_handle(&handle, signals::CONTINUE);
                sent
            }),
        }
    }
}

impl Found {
    /// Returns a handle and the number of threads, if the pid still belongs to the same process.
    fn pin(&self) -> Option<(Fd, u32)> {
        let handle = signals::handle(self.pid).ok()?;
        let stat = processes::stat(self.pid)?;
        (stat.start_ticks == self.start_ticks).then_some((handle, stat.threads))
    }
}
