//! The search for the processes of one task, and their kill, one look at a time.

mod chase;

use std::{
    collections::{BTreeMap, HashSet},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use tokio::sync::oneshot;

use super::{
    super::{procfs, survivor},
    LeaderId, SearchedMarks, SweepTarget, Swept,
    look::{Look, NewestPids},
    marks::{Marks, TaskMarks},
    struck::{Pinned, Struck, pin},
};
use crate::{process::containment, task::Survivor};

/// The time after which a count without a certain result says that there are processes.
const COUNT_WITHIN: Duration = Duration::from_secs(1);
/// The purpose of a search, and the sender for its result.
#[derive(Debug)]
pub(super) enum Purpose {
    Count(oneshot::Sender<usize>),
    Kill {
        deadline: Instant,
        reply: oneshot::Sender<Swept>,
    },
}

/// The condition for the next look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    LookAgain,
    /// Processes that were killed need time to die.
    Wait,
}

#[derive(Debug)]
pub(super) struct Search {
    target: SweepTarget,
    pub(super) searched: SearchedMarks,
    marks: TaskMarks,
    purpose: Purpose,
    began: Instant,
    /// The number of latest looks that have seen nothing.
    empty_looks: u32,
    struck: Struck,
    killed: HashSet<i32>,
    /// The pids that were dead and not reaped at the last look.
    dead: HashSet<i32>,
    last_seen: Option<i32>,
}

/// The processes found by one look.
#[derive(Debug, Default)]
struct Found {
    alive: BTreeMap<i32, OwnedFd>,
    /// A process was seen and could not be pinned.
    lost: bool,
    /// A process has died since the last look.
    died: bool,
}

impl Found {
    fn is_nothing(&self) -> bool {
        self.alive.is_empty() && !self.lost && !self.died
    }
}

impl Search {
    pub(super) fn new(target: SweepTarget, searched: SearchedMarks, purpose: Purpose) -> Self {
        Self {
            marks: TaskMarks::of(target.uid),
            target,
            searched,
            purpose,
            began: Instant::now(),
            empty_looks: 0,
            struck: Struck::default(),
            killed: HashSet::new(),
            dead: HashSet::new(),
            last_seen: None,
        }
    }

    /// Returns whether the search needs no list of all processes.
    pub(super) fn is_by_marks_alone(&self) -> bool {
        self.target.leader.is_none()
    }

    /// Takes the next step after a look; `None` once the result is sent.
    pub(super) fn advance(mut self, look: &Look, newest: &NewestPids) -> Option<(Self, Progress)> {
        if self.is_unwanted() {
            return None;
        }
        let mut found = self.find(look);
        let is_empty = found.is_nothing() && look.is_complete && self.struck.all_dead();
        self.empty_looks = if is_empty { self.empty_looks + 1 } else { 0 };
        if self.empty_looks == self.needed_looks() {
            self.report_gone();
            return None;
        }
        let seen = found.alive.len().max(usize::from(found.lost));
        let next = match (&self.purpose, is_empty) {
            (Purpose::Kill { .. }, false) => self.kill(&mut found, newest),
            (Purpose::Count(_), false) => Progress::Wait,
            (Purpose::Kill { .. } | Purpose::Count(_), true) => Progress::LookAgain,
        };
        match self.purpose {
            Purpose::Count(reply) if seen > 0 || self.began.elapsed() > COUNT_WITHIN => {
                let _ = reply.send(seen.max(1));
                None
            }
            Purpose::Kill { deadline, reply } if Instant::now() >= deadline => {
                let _ = reply.send(Swept::NotGone(survivors(&mut self.struck, self.last_seen)));
                None
            }
            purpose @ (Purpose::Count(_) | Purpose::Kill { .. }) => {
                self.purpose = purpose;
                Some((self, next))
            }
        }
    }

    /// The number of consecutive looks that must see nothing. If a shim has reported that it has no
    /// child, and nothing was seen at all, one is enough.
    fn needed_looks(&self) -> u32 {
        match (self.target.spared, self.last_seen) {
            (Some(_), None) => 1,
            (Some(_), Some(_)) | (None, _) => 2,
        }
    }

    /// Returns whether the caller is gone.
    fn is_unwanted(&self) -> bool {
        match &self.purpose {
            Purpose::Count(reply) => reply.is_closed(),
            Purpose::Kill { reply, .. } => reply.is_closed(),
        }
    }

    fn report_gone(self) {
        match self.purpose {
            Purpose::Count(reply) => drop(reply.send(0)),
            Purpose::Kill { reply, .. } => {
                if let Some(cgroup) = &self.target.cgroup {
                    containment::remove_tree(cgroup);
                }
                let found = self.killed.len();
                let _ = reply.send(Swept::Gone { found });
            }
        }
    }

    /// Finds the live processes of the task.
    fn find(&mut self, look: &Look) -> Found {
        let mut found = Found::default();
        let mut dead = HashSet::new();
        self.find_members(&mut found, &mut dead);
        let marks = self.marks;
        for pid in look.of_task(&marks) {
            let is_ours = || Marks::of(pid).are_of(&marks);
            self.add(pid, is_ours, &mut found, &mut dead);
        }
        for (leader, pid) in session(self.target.leader, &look.pids) {
            // While the leader exists, its session's number cannot be reused.
            let is_ours =
                || procfs::session_of(pid) == Some(leader.pid as i32) && leader.is_alive();
            self.add(pid, is_ours, &mut found, &mut dead);
        }
        self.dead = dead;
        found
    }

    /// Finds the members of the cgroup. One that cannot be listed counts as seen.
    fn find_members(&mut self, found: &mut Found, dead: &mut HashSet<i32>) {
        let Some(cgroup) = self.target.cgroup.clone() else {
            return;
        };
        let members = containment::members(&cgroup);
        found.lost |= members.has_hidden;
        if members.pids.is_empty() {
            return;
        }
        for pid in &members.pids {
            self.add(*pid, || true, found, dead);
        }
        // Listed again while descriptors pin them: a pid may have been reused.
        let still = containment::members(&cgroup).pids;
        found.alive.retain(|pid, _| still.contains(pid));
        found.died |= found.alive.len() < members.pids.len();
    }

    fn add(
        &mut self,
        pid: i32,
        is_ours: impl Fn() -> bool,
        found: &mut Found,
        dead: &mut HashSet<i32>,
    ) {
        let is_spared = self.target.spared.is_some_and(|shim| shim as i32 == pid);
        if is_spared || found.alive.contains_key(&pid) {
            return;
        }
        match pin(pid, is_ours) {
            Pinned::Alive(pidfd) => {
                found.alive.insert(pid, pidfd);
            }
            // A process that was dead before, or was killed here, has left no child unseen.
            Pinned::Dead if self.dead.contains(&pid) || self.killed.contains(&pid) => {
                dead.insert(pid);
                return;
            }
            Pinned::Dead => {
                dead.insert(pid);
                found.died = true;
            }
            Pinned::Lost => found.lost = true,
        }
        self.last_seen = Some(pid);
    }

    /// Kills the found processes. The leader is killed last and stopped until then: while it exists, its
    /// session's number cannot be reused.
    fn kill(&mut self, found: &mut Found, newest: &NewestPids) -> Progress {
        if found.is_nothing() {
            return Progress::Wait;
        }
        if let Some(cgroup) = &self.target.cgroup {
            containment::kill(cgroup);
        }
        let leader_is_alone = found.alive.keys().all(|pid| self.is_leader(*pid));
        for (pid, pidfd) in std::mem::take(&mut found.alive) {
            let signal = match self.is_leader(pid) && !leader_is_alone {
                true => Signal::SIGSTOP,
                false => Signal::SIGKILL,
            };
            self.killed.insert(pid);
            self.struck.strike(pid, pidfd, signal);
        }
        self.chase(newest)
    }

    fn is_leader(&self, pid: i32) -> bool {
        let leader = self.target.leader;
        leader.is_some_and(|leader| leader.pid as i32 == pid)
    }
}

impl LeaderId {
    fn is_alive(self) -> bool {
        procfs::is_alive_since(self.pid as i32, self.start_ticks)
    }
}

/// Returns the pids of a leader's session; none once the leader is gone.
fn session(leader: Option<LeaderId>, pids: &[i32]) -> impl Iterator<Item = (LeaderId, i32)> {
    let leader = leader.filter(|leader| leader.is_alive());
    leader.into_iter().flat_map(move |leader| {
        let in_session = move |pid: &&i32| procfs::session_of(**pid) == Some(leader.pid as i32);
        pids.iter()
            .filter(in_session)
            .map(move |pid| (leader, *pid))
    })
}

/// Describes the processes that were killed and are alive. If there is none, one was seen and has left
/// others behind, or could not be pinned.
fn survivors(struck: &mut Struck, last_seen: Option<i32>) -> Vec<Survivor> {
    let _ = struck.all_dead();
    let left: Vec<Survivor> = struck.pids().filter_map(survivor).collect();
    if !left.is_empty() {
        return left;
    }
    let last_seen = last_seen.unwrap_or_default();
    vec![survivor(last_seen).unwrap_or_else(|| Survivor::unnamed(last_seen))]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C14
    #[test]
    fn a_tree_that_is_not_known_to_be_empty_has_a_survivor() {
        let left = survivors(&mut Struck::default(), None);
        assert_eq!(left, [Survivor::unnamed(0)]);
        let own = std::process::id() as i32;
        let [left] = &survivors(&mut Struck::default(), Some(own))[..] else {
            panic!("not one survivor");
        };
        assert_eq!(left.pid, own);
    }
}
