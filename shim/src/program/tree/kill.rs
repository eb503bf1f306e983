//! Kills a tree.
//!
//! The kernel kills a cgroup in one step. Without one, or for processes that left it, the shim kills its
//! own children, each with its group, and reaps them, again and again. Each process that dies leaves its
//! children to the shim. The pids of the shim's own children cannot be reused before it reaps them, so
//! nothing is killed by mistake and nothing can hide.
//!
//! Against processes that fork and exit without pause this is a race. It is won by killing every child
//! before it can fork again: so no child is killed twice, the newest are killed first, and reaping can
//! wait, or is left to the kernel (see [`Reaper::leave_to_kernel`]). Then only living children are listed,
//! and each is killed by a handle.
//!
//! A chain of processes, each in a session of its own, dies in this way one after the other. So a kill
//! that takes longer than a moment also walks the tree and kills every descendant.

use core::ops::ControlFlow;

use super::{
    pace::{Pace, STORM},
    pid_set::PidSet,
    processes::{ChildSearch, NewestPids},
    reaper::Reaper,
    walk::Walk,
};
use crate::program::{
    clock::Moment,
    sys::{
        process,
        signals::{self, Timeout},
    },
    task::cgroup::Cgroup,
};

/// The time that a cgroup's members get to die before other processes are sought.
const CGROUP_MILLIS: u64 = 20;
/// The most searches for new children in one wake-up.
const ROUNDS: usize = 32;
/// The number of latest pids that are tried for a new child: a few for each of some hundred fork chains.
const NEWEST: u32 = 1024;
/// The most searches in a row that find many new children in a tree that does not fork: its processes
/// become children of the shim as their parents die.
const MOST_STORMS: u32 = 3;
/// The most children taken from the list at once.
const LISTED: usize = 512;
/// The wake-ups between two readings of the list while there are more children to reap than one call
/// takes.
const LIST_EVERY: u32 = 64;
/// The wait for children to die once all have been killed.
const PAUSE_MILLIS: u64 = 5;
/// The same while the kernel reaps and sends no signal.
const UNSIGNALLED_PAUSE_MILLIS: u64 = 1;
/// The same for an overdue kill: the rest is out of reach or stuck in the kernel.
const OVERDUE_PAUSE_MILLIS: u64 = 50;

/// The time before the first walk over the tree: most kills are over by then.
const WALK_AFTER_MILLIS: u64 = 20;
/// The pause before the second walk, and the longest one: each is twice the one before.
const WALK_PAUSE_MILLIS: u64 = 250;
const LONGEST_WALK_PAUSE_MILLIS: u64 = 1000;
/// The most processes found in a walk.
const WALKED: usize = 16 * 1024;

/// A kill in progress.
pub(crate) struct Kill {
    due: Moment,
    /// The end of the time that the cgroup's kill gets to work.
    cgroup_until: Option<Moment>,
    overdue: Overdue,
    wakes: u32,
    /// The last search has found many new children.
    storm: bool,
    /// The number of latest searches that have.
    storms: u32,
    /// The children that have been killed and not reaped yet.
    struck: PidSet,
    next_walk: Moment,
    walk_pause: u64,
    search: ChildSearch,
    newest: NewestPids,
    own_pid: u32,
}

/// The state of the report that the kill takes too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overdue {
    No,
    Unreported,
    Reported,
}

impl Kill {
    pub(crate) fn begin(
        within_millis: u64,
        cgroup: Option<&Cgroup>,
        tree: &Reaper,
        pace: &Pace,
    ) -> Self {
        let now = Moment::now();
        let own_pid = process::own_pid();
        let killed = cgroup.is_some_and(|cgroup| cgroup.kill().is_ok());
        if !killed {
            tree.signal_leader_group(signals::KILL);
        }
        Self {
            due: now.after(within_millis),
            cgroup_until: killed.then(|| now.after(CGROUP_MILLIS)),
            overdue: Overdue::No,
            wakes: 0,
            storm: pace.is_hurried(),
            storms: 0,
            struck: PidSet::new(),
            next_walk: now.after(WALK_AFTER_MILLIS),
            walk_pause: WALK_PAUSE_MILLIS,
            search: ChildSearch::of_kernel(own_pid),
            newest: NewestPids::of_kernel(),
            own_pid,
        }
    }

    /// Kills new children and reaps dead ones; returns the wait before the next call.
    pub(crate) fn proceed(
        &mut self,
        tree: &mut Reaper,
        pace: &mut Pace,
        buffer: &mut [u8],
    ) -> Timeout {
        let now = Moment::now();
        let new = if self.cgroup_until.is_some_and(|until| now < until) {
            0
        } else {
            self.strike(tree, buffer)
        };
        tree.reap(|pid| self.struck.remove(pid));
        if tree.is_empty() {
            return Timeout::Millis(0);
        }
        if self.next_walk <= now && !self.storm && !tree.has_more() {
            strike_descendants(buffer);
            self.next_walk = Moment::now().after(self.walk_pause);
            self.walk_pause = LONGEST_WALK_PAUSE_MILLIS.min(2 * self.walk_pause);
        }
        let pause = if self.due <= now {
            pace.relax();
            self.go_on_overdue(new)
        } else {
            pace.hurry();
            match tree.is_left_to_kernel() {
                true => UNSIGNALLED_PAUSE_MILLIS,
                false => PAUSE_MILLIS,
            }
        };
        let busy = tree.has_more() || new > 0;
        Timeout::Millis(if busy { 0 } else { pause })
    }

    /// Returns true once, when the kill has taken too long.
    pub(crate) fn take_overdue(&mut self) -> bool {
        let is_new = self.overdue == Overdue::Unreported;
        if is_new {
            self.overdue = Overdue::Reported;
        }
        is_new
    }

    /// Returns whether the kill's time is over.
    pub(crate) fn is_overdue(&self) -> bool {
        self.due <= Moment::now()
    }

    fn go_on_overdue(&mut self, new: usize) -> u64 {
        if self.overdue == Overdue::No {
            self.overdue = Overdue::Unreported;
        }
        if new == 0 {
            // The rest is killed again after the pause.
            self.struck = PidSet::new();
        }
        OVERDUE_PAUSE_MILLIS
    }

    /// Kills the children that have not been killed yet; returns their number.
    fn strike(&mut self, tree: &mut Reaper, buffer: &mut [u8]) -> usize {
        if self.storms > MOST_STORMS {
            tree.leave_to_kernel();
        }
        if tree.is_left_to_kernel() {
            let count = self.strike_by_handle(tree, buffer);
            self.storm = count >= STORM;
            return count;
        }
        let mut count = 0;
        if self.storm || tree.has_more() {
            for _ in 0..ROUNDS {
                let new = self.strike_newest();
                count += new;
                if new == 0 {
                    break;
                }
            }
        }
        self.wakes = self.wakes.wrapping_add(1);
        if !tree.has_more() || self.wakes.is_multiple_of(LIST_EVERY) {
            count += self.strike_listed(buffer);
        }
        self.storm = count >= STORM;
        self.storms = if self.storm { self.storms + 1 } else { 0 };
        count
    }

    /// Kills the children with the latest pids: a fork storm leaves so many dead children that reading
    /// the whole list takes too long.
    fn strike_newest(&mut self) -> usize {
        let mut count = 0;
        let Self {
            struck,
            own_pid,
            newest,
            ..
        } = self;
        newest.each(NEWEST, |pid| {
            if !struck.contains(pid) && process::is_living_child(pid) {
                struck.insert(pid);
                strike_child(pid, *own_pid, *own_pid);
                count += 1;
            }
        });
        count
    }

    /// Kills the listed children while the kernel reaps: none of them is dead, and a pid may be another
    /// process's by now.
    fn strike_by_handle(&mut self, tree: &Reaper, buffer: &mut [u8]) -> usize {
        tree.signal_leader_group(signals::KILL);
        let (mut found, mut listed) = ([0; LISTED], PidSet::new());
        let mut len = 0;
        let Self {
            struck,
            own_pid,
            search,
            ..
        } = self;
        let _ = search.children(*own_pid, 1, buffer, |pid| {
            if !struck.contains(pid) {
                let Some(free) = found.get_mut(len) else {
                    return ControlFlow::Break(());
                };
                *free = pid;
                len += 1;
            }
            listed.insert(pid);
            ControlFlow::Continue(())
        });
        // Only those of the last look: the pid of an earlier one may belong to a new child.
        self.struck = listed;
        let found = found.get(..len).unwrap_or_default();
        let strike = |pid: &&u32| {
            signals::handle(**pid).is_ok_and(|handle| {
                process::is_handle_of_living_child(&handle)
                    && signals::send_to_handle(&handle, signals::KILL).is_ok()
            })
        };
        found.iter().rev().filter(strike).count()
    }

    /// Kills the listed children, the newest first, up to a limit: in a storm the list has no end.
    fn strike_listed(&mut self, buffer: &mut [u8]) -> usize {
        let mut found = [0; LISTED];
        let mut len = 0;
        let Self {
            struck,
            own_pid,
            search,
            ..
        } = self;
        let _ = search.children(*own_pid, 1, buffer, |pid| {
            if !struck.contains(pid) {
                let Some(free) = found.get_mut(len) else {
                    return ControlFlow::Break(());
                };
                *free = pid;
                struck.insert(pid);
                len += 1;
            }
            ControlFlow::Continue(())
        });
        let found = found.get(..len).unwrap_or_default();
        // The list is in the order in which they became children of the shim.
        found.iter().rev().fold(*own_pid, |last_group, pid| {
            strike_child(*pid, last_group, *own_pid)
        });
        len
    }
}

/// Kills every descendant, the youngest generations first: they leave no orphans behind.
fn strike_descendants(buffer: &mut [u8]) {
    // Without memory for the list, the tree is killed from its top.
    let Some(mut walk) = Walk::of_tree(WALKED, buffer) else {
        return;
    };
    for index in (0..walk.len()).rev() {
        if let Some(handle) = walk.get(index).and_then(|found| found.handle()) {
            let _ = signals::send_to_handle(&handle, signals::KILL);
        }
    }
}

/// Kills a child with its group, unless that group was the last one; returns the group.
///
/// Such a group has only members of the tree: a process enters a session only by being created in it,
/// and every session but the shim's was created in the tree. The child, which only the shim can reap,
/// pins the group's number.
fn strike_child(pid: u32, last_group: u32, own_group: u32) -> u32 {
    // 0 is a group outside the pid namespace, and a kill of -1 would reach every process.
    let group = process::group_of(pid)
        .ok()
        .filter(|group| *group > 1)
        .unwrap_or(own_group);
    if group == own_group || group == last_group {
        let _ = signals::send_to_child(pid, signals::KILL);
    } else {
        let _ = signals::send_to_group(group, signals::KILL);
    }
    group
}
