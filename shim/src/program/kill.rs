//! The end of a tree, whether it wants or not.
//!
//! A cgroup is killed by the kernel in one step. Without one, or for whoever left it: we strike our
//! own children, each with its group, and take their statuses, again and again. Each process that
//! dies hands us its children, and our own children's numbers cannot be anybody else's, so nothing
//! is ever killed by mistake and nothing can hide.
//!
//! Against lineages that fork and exit without pause this is a race. It is won by striking
//! everybody who is there before they can fork again, in what little time they leave us: so nobody
//! is struck twice, and those that have just been born come first. Statuses can wait.

use core::ops::ControlFlow;

use super::{
    cgroup::Cgroup,
    clock::Moment,
    memory::Numbers,
    pace::{Pace, STORM},
    processes::{Census, Newest},
    sys::{
        process,
        signals::{self, Patience},
    },
    tree::Tree,
};

/// How long a cgroup's members get to die before we look for others.
const CGROUP_MILLIS: u64 = 20;
/// How often in one turn the newborn are sought, as long as there are any.
const ROUNDS: usize = 32;
/// How many of the latest numbers are tried for a newborn child: a few for each of some hundred
/// lineages.
const NEWEST: u32 = 1024;
/// How many children are taken from the list at once.
const LISTED: usize = 512;
/// How often the list is looked at while there are more statuses than we can take.
const LIST_EVERY: u32 = 64;
/// How long to wait for statuses when everybody has been struck.
const PAUSE_MILLIS: u64 = 5;
/// The same, when the kill is overdue: whoever is left is beyond our reach or in the kernel.
const OVERDUE_PAUSE_MILLIS: u64 = 50;
/// One more than the largest pid there can be.
const PIDS: usize = 4 * 1024 * 1024;

/// A kill that was ordered.
pub(super) struct Kill {
    due: Moment,
    /// Until when the cgroup's kill is given time to work.
    cgroup_until: Option<Moment>,
    overdue: Overdue,
    turns: u32,
    storm: bool,
    struck: Struck,
    census: Census,
    newest: Newest,
    own_pid: u32,
}

/// Whether the kill has taken too long.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overdue {
    No,
    Untold,
    Told,
}

impl Kill {
    /// Begins.
    pub(super) fn begin(within_millis: u64, cgroup: Option<&Cgroup>, pace: Pace) -> Self {
        let now = Moment::now();
        let own_pid = process::own_pid();
        let killed = cgroup.is_some_and(|cgroup| cgroup.kill().is_ok());
        Self {
            due: now.after(within_millis),
            cgroup_until: killed.then(|| now.after(CGROUP_MILLIS)),
            overdue: Overdue::No,
            turns: 0,
            storm: pace != Pace::Normal,
            struck: Struck::new(),
            census: Census::of_kernel(own_pid),
            newest: Newest::of_kernel(),
            own_pid,
        }
    }

    /// Strikes whoever is new and takes statuses; how long to wait before the next turn.
    pub(super) fn turn(&mut self, tree: &mut Tree, pace: &mut Pace, buffer: &mut [u8]) -> Patience {
        let now = Moment::now();
        let new = if self.cgroup_until.is_some_and(|until| now < until) {
            0
        } else {
            self.strike(tree, buffer)
        };
        tree.reap(|pid| self.struck.forget(pid));
        if tree.is_empty() {
            return Patience::Millis(0);
        }
        let patience = if self.due <= now {
            pace.relax();
            self.go_on_overdue(new)
        } else {
            pace.hurry();
            PAUSE_MILLIS
        };
        let busy = tree.has_more() || new > 0;
        Patience::Millis(if busy { 0 } else { patience })
    }

    /// Whether it is to be told, now and only now, that the kill has taken too long.
    pub(super) fn is_overdue_news(&mut self) -> bool {
        let news = self.overdue == Overdue::Untold;
        if news {
            self.overdue = Overdue::Told;
        }
        news
    }

    /// Whether the time that it may take is over.
    pub(super) fn is_overdue(&self) -> bool {
        self.due <= Moment::now()
    }

    fn go_on_overdue(&mut self, new: usize) -> u64 {
        if self.overdue == Overdue::No {
            self.overdue = Overdue::Untold;
        }
        if new == 0 {
            // Whoever is left is struck again after the pause.
            self.struck = Struck::new();
        }
        OVERDUE_PAUSE_MILLIS
    }

    /// Strikes whoever has not been; how many.
    fn strike(&mut self, tree: &Tree, buffer: &mut [u8]) -> usize {
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
        self.turns = self.turns.wrapping_add(1);
        if !tree.has_more() || self.turns.is_multiple_of(LIST_EVERY) {
            count += self.strike_listed(buffer);
        }
        self.storm = count >= STORM;
        count
    }

    /// Strikes those who have just been born: a storm leaves so many dead behind that a list of all
    /// children takes longer than we may have.
    fn strike_newest(&mut self) -> usize {
        let mut count = 0;
        let Self {
            struck,
            own_pid,
            newest,
            ..
        } = self;
        newest.each(NEWEST, |pid| {
            if !struck.has(pid) && process::is_living_child(pid) {
                struck.remember(pid);
                strike_child(pid, *own_pid, *own_pid);
                count += 1;
            }
        });
        count
    }

    /// Strikes the children, the newest first, but no more than so many at a time: in a storm the
    /// list would have no end.
    fn strike_listed(&mut self, buffer: &mut [u8]) -> usize {
        let mut found = [0; LISTED];
        let mut len = 0;
        let Self {
            struck,
            own_pid,
            census,
            ..
        } = self;
        let _ = census.children(*own_pid, 1, buffer, |pid| {
            if !struck.has(pid) {
                let Some(free) = found.get_mut(len) else {
                    return ControlFlow::Break(());
                };
                *free = pid;
                struck.remember(pid);
                len += 1;
            }
            ControlFlow::Continue(())
        });
        let found = found.get(..len).unwrap_or_default();
        // They came to us in this order.
        found.iter().rev().fold(*own_pid, |last_group, pid| {
            strike_child(*pid, last_group, *own_pid)
        });
        len
    }
}

/// Kills a child with its group, unless that was the last one; the group.
///
/// A group here has only members of the tree: sessions are entered by birth alone, and every
/// session but ours was made in the tree. The child, whose status only we can take, pins the
/// number.
fn strike_child(pid: u32, last_group: u32, own_group: u32) -> u32 {
    // 0 is a group beyond our namespace, and 1 would mean everybody.
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

/// The children that have had their signal: a bit each, in pages that exist as they are used.
struct Struck {
    /// Without memory, everybody is struck each time.
    bits: Option<Numbers>,
}

impl Struck {
    fn new() -> Self {
        Self {
            bits: Numbers::new(PIDS / 64),
        }
    }

    fn has(&mut self, pid: u32) -> bool {
        self.word(pid).is_some_and(|word| *word & bit(pid) != 0)
    }

    fn remember(&mut self, pid: u32) {
        if let Some(word) = self.word(pid) {
            *word |= bit(pid);
        }
    }

    /// Its number may come to mean another.
    fn forget(&mut self, pid: u32) {
        if let Some(word) = self.word(pid) {
            *word &= !bit(pid);
        }
    }

    fn word(&mut self, pid: u32) -> Option<&mut u64> {
        self.bits.as_mut()?.items().get_mut(pid as usize / 64)
    }
}

fn bit(pid: u32) -> u64 {
    1 << (pid % 64)
}
