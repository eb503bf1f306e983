//! Admission: the limits of the server, of sessions and of labels, the exclusive keys and the
//! queues. It decides and remembers. It notifies no task, and knows no clock and no process.
//!
//! ```text
//!            claim                          free, configure
//!  new task ───────> refused      waiting ────────────────────> admitted ──────> freed
//!              │                    ^  └───────────────────────────────────────────^
//!              ├────────────────────┘                              ^     free
//!              └───────────────────────────────────────────────────┘
//! ```
//!
//! Invariants after every call:
//!
//! - A live task holds the key that is its own id, from its claim on: a claim on that key comes after it.
//! - Any other key has one holder. Claims on a key are admitted in the order of their arrival, except those
//!   that replace the holder: of these the newest is first. (A server that died between the end of a
//!   holder and its record leaves two holders, one of which has ended.)
//! - A queue runs at most as many tasks as it has slots, unless the slots were lowered meanwhile.
//! - No claim waits that could be admitted. So a task that also waits for something else lets later
//!   tasks of its queue pass, and is still the first to be admitted once it can be.
//! - An admitted task stays admitted until it is freed. A refused claim changes nothing.
//!
//! `rules` has the conditions, `counts` the bookkeeping.

mod claim;
mod counts;
mod rules;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

use claim::QueuePosition;
pub(crate) use claim::Refused;
pub(super) use claim::{Claim, Decision};
use rules::Blocked;

use crate::{
    config::Limits,
    task::{ExclusiveMode, QueueSettings, Seq, Task, TaskId},
};

/// The most claims that may wait: the default limit of running tasks, so that memory stays bounded.
pub(super) const MAX_WAITING: usize = 10_000;

/// A queue, as clients see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct QueueState {
    pub(crate) name: String,
    pub(crate) settings: QueueSettings,
    /// The number of admitted tasks.
    pub(crate) running: usize,
    pub(crate) waiting: usize,
}

#[derive(Debug, Default)]
struct Queue {
    settings: QueueSettings,
    running: usize,
    waiting: BTreeSet<QueuePosition>,
}

/// The place of a live claim.
#[derive(Debug, Clone, Copy)]
enum Place {
    Admitted(Seq),
    Waiting(QueuePosition),
}

/// A key that claims name.
#[derive(Debug, Default)]
struct Key {
    holders: BTreeSet<Seq>,
    waiting: BTreeSet<QueuePosition>,
}

/// The claims of all live tasks.
#[derive(Debug, Default)]
pub(super) struct Admission {
    limits: Limits,
    admitted: HashMap<Seq, Claim>,
    waiting: BTreeMap<QueuePosition, Claim>,
    /// Every live claim by the id of its task.
    places: HashMap<TaskId, Place>,
    sessions: HashMap<String, usize>,
    labels: HashMap<(String, String), usize>,
    keys: HashMap<String, Key>,
    queues: BTreeMap<String, Queue>,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The task that answers a claim of the mode ENSURE, if there is one: the holder of its key or, without
    /// one that stays, the first task in line for it. `is_stopping` tells which tasks are on their way out.
    pub(super) fn find_equal(
        &self,
        claim: &Claim,
        is_stopping: impl Fn(&TaskId) -> bool,
    ) -> Result<Option<TaskId>, Refused> {
        let (Some(ExclusiveMode::Ensure), Some(key)) = (claim.mode(), claim.key()) else {
            return Ok(None);
        };
        let Some(other) = self.holder_that_stays(key, is_stopping) else {
            return Ok(None);
        };
        match claim.spec.first_difference(&other.spec) {
            None => Ok(Some(other.id.clone())),
            Some(field) => Err(Refused::KeyDiffers {
                key: key.to_owned(),
                holder: other.id.clone(),
                field,
            }),
        }
    }

    /// The tasks that have a key or wait for it.
    pub(super) fn claimants(&self, key: &str) -> Vec<TaskId> {
        let claims = self.holders(key).chain(self.in_line(key));
        claims.map(|claim| claim.id.clone()).collect()
    }

    /// Admits, queues or refuses a new claim. Each claim has a higher `seq` than the one before it.
    pub(super) fn claim(&mut self, claim: Claim) -> Result<Decision, Refused> {
        if let (Some(ExclusiveMode::Reject), Some(key)) = (claim.mode(), claim.key())
            && let Some(holder) = self.holder_or_next(key)
        {
            let key = key.to_owned();
            return Err(Refused::KeyHeld { key, holder });
        }
        match self.blocked_by(&claim) {
            None => {
                self.add_admitted(claim);
                return Ok(Decision::Admitted);
            }
            Some(Blocked::Limit(refused)) if !claim.spec.may_wait() => return Err(refused),
            // The slot of the replaced task counts as free.
            Some(Blocked::Key) if !claim.spec.may_wait() => {
                self.check_limits_without_holders(&claim)?
            }
            Some(Blocked::Key | Blocked::Queue | Blocked::Limit(_)) => {}
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(Refused::QueueFull {
                waiting: self.waiting.len(),
                max: MAX_WAITING,
            });
        }
        self.add_waiting(claim);
        Ok(Decision::Queued)
    }

    /// Restores the claim of a task of an earlier server, whatever the limits are now. It admits no
    /// waiting claim: see [`Self::admit_all_possible`].
    pub(super) fn restore(&mut self, claim: Claim, decision: Decision) {
        match decision {
            Decision::Admitted => self.add_admitted(claim),
            Decision::Queued => self.add_waiting(claim),
        }
    }

    /// Admits every waiting claim that can be, and returns their tasks.
    pub(super) fn admit_all_possible(&mut self) -> Vec<TaskId> {
        let all: Vec<QueuePosition> = self.waiting.keys().copied().collect();
        let mut admitted = Vec::new();
        for position in all {
            if self.admitted.len() >= self.limits.tasks {
                break;
            }
            self.admit_if_possible(position, &mut admitted);
        }
        admitted
    }

    /// Frees the claim of a task that has ended or gives up, and returns the tasks that are admitted
    /// because of it.
    pub(super) fn free(&mut self, seq: Seq) -> Vec<TaskId> {
        if let Some(claim) = self.admitted.get(&seq) {
            // A claim that waits for a limit may be in any queue.
            let was_at_limit = self.check_limits(claim, &BTreeSet::new()).is_err();
            let claim = self.remove_admitted(seq);
            return match (was_at_limit, claim) {
                (true, _) => self.admit_all_possible(),
                (false, Some(claim)) => self.admit_after(&claim),
                (false, None) => Vec::new(),
            };
        }
        let positions = [
            QueuePosition::Replacing(Reverse(seq)),
            QueuePosition::Queued(seq),
        ];
        let given_up = positions.iter().find_map(|at| self.waiting.remove(at));
        let Some(claim) = given_up else {
            return Vec::new();
        };
        self.places.remove(&claim.id);
        self.remove_from_lines(&claim);
        self.drop_if_unused(&claim);
        // A later claim may have waited behind it for the same key.
        self.admit_after(&claim)
    }

    /// Changes a queue's settings, and returns the tasks that are admitted because of it.
    pub(super) fn configure(&mut self, name: &str, settings: QueueSettings) -> Vec<TaskId> {
        let queue = self.queues.entry(name.to_owned()).or_default();
        queue.settings = settings;
        let mut admitted = Vec::new();
        self.admit_from_queue(name, &mut admitted);
        self.drop_queue_if_unused(name);
        admitted
    }

    /// Every queue that has tasks or settings of its own, by name.
    pub(super) fn queues(&self) -> impl Iterator<Item = QueueState> {
        self.queues.iter().map(|(name, queue)| queue.state(name))
    }

    /// The queue of this name, used or not.
    pub(super) fn queue(&self, name: &str) -> QueueState {
        let unused = Queue::default();
        self.queues.get(name).unwrap_or(&unused).state(name)
    }

    /// The number of admitted tasks.
    pub(super) fn running(&self) -> usize {
        self.admitted.len()
    }

    /// The tasks that must end before this one can replace them: the holders of its key, and older
    /// tasks that wait to replace them.
    pub(super) fn replaced_by(&self, task: &Task) -> Vec<TaskId> {
        let claim = Claim::of(task);
        let (Some(ExclusiveMode::Replace), Some(key)) = (claim.mode(), claim.key()) else {
            return Vec::new();
        };
        // A newer holder has itself replaced this task.
        let holders = self.holders(key).filter(|holder| holder.seq < claim.seq);
        let superseded = self.in_line(key).filter(|other| match other.position() {
            QueuePosition::Replacing(Reverse(seq)) => seq < claim.seq,
            QueuePosition::Queued(_) => false,
        });
        holders
            .chain(superseded)
            .map(|replaced| replaced.id.clone())
            .collect()
    }

    /// Admits the claims that waited for the queue slot and the keys of a freed claim.
    fn admit_after(&mut self, freed: &Claim) -> Vec<TaskId> {
        let mut admitted = Vec::new();
        if let Some(queue) = freed.queue() {
            self.admit_from_queue(queue, &mut admitted);
        }
        for key in freed.key().into_iter().chain([freed.id.as_str()]) {
            let key = self.keys.get(key);
            if let Some(first) = key.and_then(|key| key.waiting.first().copied()) {
                self.admit_if_possible(first, &mut admitted);
            }
        }
        admitted
    }

    /// Stops at the last free slot: the rest of the queue may be long.
    fn admit_from_queue(&mut self, queue: &str, admitted: &mut Vec<TaskId>) {
        let mut last = Bound::Unbounded;
        while let Some(queue) = self.queues.get(queue).filter(|queue| queue.is_open()) {
            let mut rest = queue.waiting.range((last, Bound::Unbounded));
            let Some(position) = rest.next().copied() else {
                return;
            };
            self.admit_if_possible(position, admitted);
            last = Bound::Excluded(position);
        }
    }

    /// An admission never unblocks another claim, so one look at each is enough.
    fn admit_if_possible(&mut self, position: QueuePosition, admitted: &mut Vec<TaskId>) {
        let claim = self.waiting.get(&position);
        if claim.is_none_or(|claim| self.blocked_by(claim).is_some()) {
            return;
        }
        if let Some(claim) = self.waiting.remove(&position) {
            self.remove_from_lines(&claim);
            admitted.push(claim.id.clone());
            self.add_admitted(claim);
        }
    }
}

impl Queue {
    fn is_open(&self) -> bool {
        !self.settings.paused && self.running < self.settings.slots as usize
    }

    fn state(&self, name: &str) -> QueueState {
        QueueState {
            name: name.to_owned(),
            settings: self.settings,
            running: self.running,
            waiting: self.waiting.len(),
        }
    }
}

#[cfg(test)]
mod tests;
