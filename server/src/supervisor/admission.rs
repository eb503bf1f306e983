//! Who may begin, and who waits: the limits of the server, of sessions and of labels, the exclusive keys
//! and the queues. It decides and remembers; it tells nobody, and knows no clock and no process.
//!
//! ```text
//!            claim                          free, configure
//!  newcomer ───────> refused      waits ──────────────────────> holds ──────> gone
//!              │                    ^  └────────────────────────────────────────^
//!              ├────────────────────┘                              ^     free
//!              └───────────────────────────────────────────────────┘
//! ```
//!
//! What holds after every step:
//!
//! - A key has one holder, and nobody gets it past somebody who came first for it, except to replace:
//!   of those who replace, the newest goes first. (A server that died between a holder's end and the
//!   record of it leaves two behind, one of whom is gone.)
//! - A queue runs no more than its slots, unless they were lowered meanwhile.
//! - Nobody waits who could begin. So a task that waits for something else as well lets others of its
//!   queue pass, and is still the first whenever it could begin.
//! - Whoever holds goes on holding until it is freed: nobody is evicted. A refused claim changes nothing.

mod claim;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
};

pub use claim::Refused;
use claim::Turn;
pub(super) use claim::{Claim, Standing};

use crate::{
    config::Limits,
    task::{ExclusiveMode, QueueSettings, Seq, Task, TaskId},
};

/// How many may wait: as many as may run where nobody says otherwise, so that memory stays bounded.
pub(super) const MAX_WAITING: usize = 10_000;

/// What keeps a claim from beginning now.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Obstacle {
    /// Somebody else has the key, or comes first.
    Key,
    /// The queue has no slot free, or is paused.
    Queue,
    /// A limit is reached.
    Limit(Refused),
}

/// A queue as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueState {
    /// What it is called.
    pub name: String,
    /// How it is set.
    pub settings: QueueSettings,
    /// How many of its tasks have begun and are not over.
    pub running: usize,
    /// How many wait.
    pub waiting: usize,
}

#[derive(Debug, Default)]
struct Line {
    settings: QueueSettings,
    running: usize,
    waiting: BTreeSet<Turn>,
}

#[derive(Debug, Default)]
struct Key {
    holders: BTreeSet<Seq>,
    waiting: BTreeSet<Turn>,
}

/// All claims of live tasks.
#[derive(Debug, Default)]
pub(super) struct Admission {
    limits: Limits,
    holding: HashMap<Seq, Claim>,
    waiting: BTreeMap<Turn, Claim>,
    sessions: HashMap<String, usize>,
    labels: HashMap<(String, String), usize>,
    keys: HashMap<String, Key>,
    queues: BTreeMap<String, Line>,
}

impl Admission {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Takes a newcomer's claim; each has a higher number than the one before it.
    pub(super) fn claim(&mut self, claim: Claim) -> Result<Standing, Refused> {
        if let (Some(ExclusiveMode::Reject), Some(key)) = (claim.mode(), claim.key())
            && let Some(holder) = self.first_for(key)
        {
            let key = key.to_owned();
            return Err(Refused::KeyHeld { key, holder });
        }
        let obstacle = match self.obstacle(&claim) {
            None => {
                self.hold(claim);
                return Ok(Standing::Begins);
            }
            Some(obstacle) => obstacle,
        };
        match obstacle {
            Obstacle::Limit(refused) if !claim.is_patient() => return Err(refused),
            // The place of the one it replaces is as good as free.
            Obstacle::Key if !claim.is_patient() => self.limits_without_rivals(&claim)?,
            Obstacle::Key | Obstacle::Queue | Obstacle::Limit(_) => {}
        }
        if self.waiting.len() >= MAX_WAITING {
            return Err(Refused::QueueFull {
                waiting: self.waiting.len(),
                max: MAX_WAITING,
            });
        }
        self.wait(claim);
        Ok(Standing::Waits)
    }

    /// Takes back the claim of a task of an earlier server, whatever the limits are now. Those who wait
    /// are not looked at: see [`Self::settle`].
    pub(super) fn restore(&mut self, claim: Claim, standing: Standing) {
        match standing {
            Standing::Begins => self.hold(claim),
            Standing::Waits => self.wait(claim),
        }
    }

    /// Lets everybody begin who can; they hold from here on.
    pub(super) fn settle(&mut self) -> Vec<TaskId> {
        let all: Vec<Turn> = self.waiting.keys().copied().collect();
        let mut begun = Vec::new();
        for turn in all {
            if self.holding.len() >= self.limits.tasks {
                break;
            }
            self.begin_if_free(turn, &mut begun);
        }
        begun
    }

    /// A task is over, or its claim is given up. Gives those whose turn has come; they hold from here
    /// on.
    pub(super) fn free(&mut self, seq: Seq) -> Vec<TaskId> {
        if let Some(claim) = self.holding.get(&seq) {
            // Who waits for room within a limit may wait in any line.
            let is_tight = self.limit(claim, &BTreeSet::new()).is_err();
            let claim = self.let_go(seq);
            return match (is_tight, claim) {
                (true, _) => self.settle(),
                (false, Some(claim)) => self.begin_behind(&claim),
                (false, None) => Vec::new(),
            };
        }
        let turns = [Turn::Replacing(Reverse(seq)), Turn::Queued(seq)];
        let given_up = turns.iter().find_map(|turn| self.waiting.remove(turn));
        let Some(claim) = given_up else {
            return Vec::new();
        };
        self.leave_lines(&claim);
        self.forget_idle(&claim);
        // Somebody may have come after it for the same key.
        self.begin_behind(&claim)
    }

    /// Sets a queue, and gives those whose turn has come by that.
    pub(super) fn configure(&mut self, name: &str, settings: QueueSettings) -> Vec<TaskId> {
        let line = self.queues.entry(name.to_owned()).or_default();
        line.settings = settings;
        let mut begun = Vec::new();
        self.begin_in_line(name, &mut begun);
        self.forget_idle_queue(name);
        begun
    }

    /// Every queue that has tasks, or settings of its own, by name.
    pub(super) fn queues(&self) -> impl Iterator<Item = QueueState> {
        self.queues.iter().map(|(name, line)| line.state(name))
    }

    /// A queue, used or not.
    pub(super) fn queue(&self, name: &str) -> QueueState {
        let unused = Line::default();
        self.queues.get(name).unwrap_or(&unused).state(name)
    }

    /// How many hold.
    pub(super) fn running(&self) -> usize {
        self.holding.len()
    }

    /// Whom a task that is to replace another has to see gone: those who have its key, and those who
    /// were to replace them before it.
    pub(super) fn rivals(&self, task: &Task) -> Vec<TaskId> {
        let claim = Claim::of(task);
        let (Some(ExclusiveMode::Replace), Some(key)) = (claim.mode(), claim.key()) else {
            return Vec::new();
        };
        let Some(key) = self.keys.get(key) else {
            return Vec::new();
        };
        // A newer one, which has come to hold the key meanwhile, has replaced this one.
        let holders = key.holders.iter().filter(|holder| **holder < claim.seq);
        let holders = holders.filter_map(|holder| self.holding.get(holder));
        let superseded = key.waiting.iter().filter(|turn| match turn {
            Turn::Replacing(Reverse(seq)) => *seq < claim.seq,
            Turn::Queued(_) => false,
        });
        let superseded = superseded.filter_map(|turn| self.waiting.get(turn));
        holders
            .chain(superseded)
            .map(|rival| rival.id.clone())
            .collect()
    }

    /// Lets those begin who waited for what a claim has left behind. The rest of its line is not looked
    /// at once that is closed again: it may be long.
    fn begin_behind(&mut self, claim: &Claim) -> Vec<TaskId> {
        let mut begun = Vec::new();
        if let Some(queue) = claim.queue() {
            self.begin_in_line(queue, &mut begun);
        }
        let key = claim.key().and_then(|key| self.keys.get(key));
        if let Some(first) = key.and_then(|key| key.waiting.first().copied()) {
            self.begin_if_free(first, &mut begun);
        }
        begun
    }

    fn begin_in_line(&mut self, queue: &str, begun: &mut Vec<TaskId>) {
        let mut last = Bound::Unbounded;
        while let Some(line) = self.queues.get(queue).filter(|line| line.is_open()) {
            let mut rest = line.waiting.range((last, Bound::Unbounded));
            let Some(turn) = rest.next().copied() else {
                return;
            };
            self.begin_if_free(turn, begun);
            last = Bound::Excluded(turn);
        }
    }

    /// Nobody makes way for another by beginning, so that each has to be looked at only once.
    fn begin_if_free(&mut self, turn: Turn, begun: &mut Vec<TaskId>) {
        let claim = self.waiting.get(&turn);
        if claim.is_none_or(|claim| self.obstacle(claim).is_some()) {
            return;
        }
        if let Some(claim) = self.waiting.remove(&turn) {
            self.leave_lines(&claim);
            begun.push(claim.id.clone());
            self.hold(claim);
        }
    }

    fn obstacle(&self, claim: &Claim) -> Option<Obstacle> {
        let key = claim.key().and_then(|key| self.keys.get(key));
        let comes_later = |key: &Key| key.waiting.first().is_some_and(|turn| *turn < claim.turn());
        if key.is_some_and(|key| !key.holders.is_empty() || comes_later(key)) {
            return Some(Obstacle::Key);
        }
        let line = claim.queue().and_then(|queue| self.queues.get(queue));
        if line.is_some_and(|line| !line.is_open()) {
            return Some(Obstacle::Queue);
        }
        self.limit(claim, &BTreeSet::new())
            .err()
            .map(Obstacle::Limit)
    }

    fn limits_without_rivals(&self, claim: &Claim) -> Result<(), Refused> {
        let key = claim.key().and_then(|key| self.keys.get(key));
        let none = BTreeSet::new();
        self.limit(claim, key.map_or(&none, |key| &key.holders))
    }

    /// Whether every limit has room for it, once those have left who are about to.
    fn limit(&self, claim: &Claim, leaving: &BTreeSet<Seq>) -> Result<(), Refused> {
        let leaving = |counts: &dyn Fn(&Claim) -> bool| {
            let left = leaving.iter().filter_map(|seq| self.holding.get(seq));
            left.filter(|claim| counts(claim)).count()
        };
        let (running, max) = (self.holding.len(), self.limits.tasks);
        if running.saturating_sub(leaving(&|_| true)) >= max {
            return Err(Refused::Server { running, max });
        }
        if let (Some(max), Some(session)) = (self.limits.per_session, claim.session()) {
            let running = self.sessions.get(session).copied().unwrap_or(0);
            let same = |one: &Claim| one.session() == Some(session);
            if running.saturating_sub(leaving(&same)) >= max {
                let session_id = session.to_owned();
                return Err(Refused::Session {
                    session_id,
                    running,
                    max,
                });
            }
        }
        for (label, value) in claim.labels(&self.limits) {
            let max = self
                .limits
                .per_label
                .get(label)
                .copied()
                .unwrap_or(usize::MAX);
            let counted = self.labels.get(&(label.clone(), value.clone()));
            let running = counted.copied().unwrap_or(0);
            let same = |one: &Claim| one.spec.labels.get(label) == Some(value);
            if running.saturating_sub(leaving(&same)) >= max {
                let (label, value) = (label.clone(), value.clone());
                return Err(Refused::Label {
                    label,
                    value,
                    running,
                    max,
                });
            }
        }
        Ok(())
    }

    /// Who has the key or, if nobody has, is the first to get it.
    fn first_for(&self, key: &str) -> Option<TaskId> {
        let key = self.keys.get(key)?;
        let holder = key.holders.first().and_then(|seq| self.holding.get(seq));
        let first = || key.waiting.first().and_then(|turn| self.waiting.get(turn));
        holder.or_else(first).map(|claim| claim.id.clone())
    }

    fn hold(&mut self, claim: Claim) {
        if let Some(key) = claim.key() {
            let key = self.keys.entry(key.to_owned()).or_default();
            key.holders.insert(claim.seq);
        }
        if let Some(queue) = claim.queue() {
            self.queues.entry(queue.to_owned()).or_default().running += 1;
        }
        if let (Some(_), Some(session)) = (self.limits.per_session, claim.session()) {
            *self.sessions.entry(session.to_owned()).or_default() += 1;
        }
        for (label, value) in claim.labels(&self.limits) {
            let counted = self.labels.entry((label.clone(), value.clone()));
            *counted.or_default() += 1;
        }
        self.holding.insert(claim.seq, claim);
    }

    fn let_go(&mut self, seq: Seq) -> Option<Claim> {
        let claim = self.holding.remove(&seq)?;
        if let Some(key) = claim.key().and_then(|key| self.keys.get_mut(key)) {
            key.holders.remove(&claim.seq);
        }
        if let Some(line) = claim.queue().and_then(|queue| self.queues.get_mut(queue)) {
            line.running = line.running.saturating_sub(1);
        }
        if let Some(session) = claim.session() {
            count_down(&mut self.sessions, session);
        }
        for (label, value) in claim.labels(&self.limits) {
            count_down(&mut self.labels, &(label.clone(), value.clone()));
        }
        self.forget_idle(&claim);
        Some(claim)
    }

    fn wait(&mut self, claim: Claim) {
        let turn = claim.turn();
        if let Some(key) = claim.key() {
            let key = self.keys.entry(key.to_owned()).or_default();
            key.waiting.insert(turn);
        }
        if let Some(queue) = claim.queue() {
            let line = self.queues.entry(queue.to_owned()).or_default();
            line.waiting.insert(turn);
        }
        self.waiting.insert(turn, claim);
    }

    fn leave_lines(&mut self, claim: &Claim) {
        let turn = claim.turn();
        if let Some(key) = claim.key().and_then(|key| self.keys.get_mut(key)) {
            key.waiting.remove(&turn);
        }
        if let Some(line) = claim.queue().and_then(|queue| self.queues.get_mut(queue)) {
            line.waiting.remove(&turn);
        }
    }

    /// What nobody has and nobody wants leaves no trace.
    fn forget_idle(&mut self, claim: &Claim) {
        if let Some(key) = claim.key() {
            let is_idle = |key: &Key| key.holders.is_empty() && key.waiting.is_empty();
            if self.keys.get(key).is_some_and(is_idle) {
                self.keys.remove(key);
            }
        }
        if let Some(queue) = claim.queue() {
            self.forget_idle_queue(queue);
        }
    }

    fn forget_idle_queue(&mut self, name: &str) {
        let is_idle = |line: &Line| {
            line.settings == QueueSettings::default()
                && line.running == 0
                && line.waiting.is_empty()
        };
        if self.queues.get(name).is_some_and(is_idle) {
            self.queues.remove(name);
        }
    }
}

impl Line {
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

fn count_down<K, Q>(counts: &mut HashMap<K, usize>, of: &Q)
where
    K: std::borrow::Borrow<Q> + std::hash::Hash + Eq,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

#[cfg(test)]
mod tests;
