//! One signal, and SIGCONT behind it, to every process of the tree that can be found.
//!
//! First the tree is walked, so that those are counted who were alive when the signal came. Then
//! the leader's group is told, at once and with nobody missed, and one by one the descendants that
//! have left it. These are found by number and signalled by handle: a number counts only if, while
//! a handle pins the parent's number, the process says that this is its parent.

use core::ops::ControlFlow;

use super::{
    memory::Numbers,
    processes::{self, Census},
    sys::{Fd, process, signals},
};

/// How many processes are found at most. Of a larger tree, the rest hears of it by SIGKILL.
const LIMIT: usize = 4096;
/// How often orphans are looked for that came to us during the walk.
const PASSES: usize = 3;
/// How many numbers a process takes in the list.
const WIDTH: usize = 3;

/// Sends it; to how many that were alive.
pub(super) fn send(signal: i32, leader: Option<u32>, buffer: &mut [u8]) -> u32 {
    let walk = Numbers::new(WIDTH * LIMIT).map(|list| walk(list, leader, buffer));
    if let Some(group) = leader {
        let _ = signals::send_to_group(group, signal);
        let _ = signals::send_to_group(group, signals::CONTINUE);
    }
    match walk {
        Some(mut found) => (0..found.len)
            .filter(|index| found.tell(*index, signal))
            .count() as u32,
        // No memory for a list: the leader at least was told.
        None => u32::from(leader.is_some()),
    }
}

/// A process that was found alive.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Found {
    pid: u32,
    /// Tells it from a later process of the same number.
    start_ticks: u64,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Hears what the leader's group is told.
    LeaderGroup,
    /// Has left it.
    Elsewhere,
}

/// Everybody who was found, in the order of the walk: breadth first.
struct Tree {
    leader: Option<u32>,
    census: Census,
    list: Numbers,
    len: usize,
    /// Whether somebody's children became ours while we looked for them.
    missed: bool,
}

fn walk(list: Numbers, leader: Option<u32>, buffer: &mut [u8]) -> Tree {
    let own_pid = process::own_pid();
    let census = Census::of_kernel(own_pid);
    let mut tree = Tree {
        leader,
        census,
        list,
        len: 0,
        missed: false,
    };
    let mut next = 0;
    for _ in 0..PASSES {
        tree.missed = false;
        tree.find_children(own_pid, 1, buffer);
        while let Some(parent) = tree.get(next) {
            tree.visit(parent, buffer);
            next += 1;
        }
        if !tree.missed {
            break;
        }
    }
    tree
}

impl Tree {
    fn get(&mut self, index: usize) -> Option<Found> {
        if index >= self.len {
            return None;
        }
        match *self.list.items().get(WIDTH * index..WIDTH * (index + 1))? {
            [pid, start_ticks, 0] => Some(Found {
                pid: pid as u32,
                start_ticks,
                place: Place::LeaderGroup,
            }),
            [pid, start_ticks, _] => Some(Found {
                pid: pid as u32,
                start_ticks,
                place: Place::Elsewhere,
            }),
            _ => None,
        }
    }

    fn push(&mut self, found: Found) {
        let place = match found.place {
            Place::LeaderGroup => 0,
            Place::Elsewhere => 1,
        };
        let known = (0..self.len).any(|index| self.get(index) == Some(found));
        let range = WIDTH * self.len..WIDTH * (self.len + 1);
        if !known && let Some(free) = self.list.items().get_mut(range) {
            free.copy_from_slice(&[u64::from(found.pid), found.start_ticks, place]);
            self.len += 1;
        }
    }

    /// Finds the living children of a process whose number is pinned.
    fn find_children(&mut self, parent: u32, threads: u32, buffer: &mut [u8]) {
        let _ = self.census.children(parent, threads, buffer, |pid| {
            if let Some(stat) = processes::stat(pid)
                && stat.parent == parent
                && !stat.is_dead()
            {
                let in_group = self.leader == Some(stat.group);
                let place = if in_group {
                    Place::LeaderGroup
                } else {
                    Place::Elsewhere
                };
                self.push(Found {
                    pid,
                    start_ticks: stat.start_ticks,
                    place,
                });
            }
            if self.len < LIMIT {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        });
    }

    /// Finds the children of one that was found.
    fn visit(&mut self, parent: Found, buffer: &mut [u8]) {
        let before = self.len;
        if let Some((handle, threads)) = parent.pin() {
            self.find_children(parent.pid, threads, buffer);
            if signals::send_to_handle(&handle, 0).is_ok() {
                return;
            }
        }
        // It is gone, its children are ours by now, and its number may have been another's.
        self.len = before;
        self.missed = true;
    }

    /// Tells one, unless it was told with its group; whether it was told at all.
    fn tell(&mut self, index: usize, signal: i32) -> bool {
        let Some(found) = self.get(index) else {
            return false;
        };
        match found.place {
            Place::LeaderGroup => true,
            Place::Elsewhere => found.pin().is_some_and(|(handle, _)| {
                let told = signals::send_to_handle(&handle, signal).is_ok();
                let _ = signals::send_to_handle(&handle, signals::CONTINUE);
                told
            }),
        }
    }
}

impl Found {
    /// A handle, if the number still means the same process, and how many threads it has.
    fn pin(&self) -> Option<(Fd, u32)> {
        let handle = signals::handle(self.pid).ok()?;
        let stat = processes::stat(self.pid)?;
        (stat.start_ticks == self.start_ticks).then_some((handle, stat.threads))
    }
}
