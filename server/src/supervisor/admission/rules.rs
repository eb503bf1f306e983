//! The conditions under which a claim is admitted.

use std::collections::BTreeSet;

use super::{Admission, Claim, Place, QueuePosition, Refused};
use crate::task::{Seq, TaskId};

/// The first thing that keeps a claim from being admitted now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Another task has the key, or is before it in line.
    Key,
    /// The queue has no free slot, or is paused.
    Queue,
    /// A limit is reached.
    Limit(Refused),
}

impl Admission {
    pub(super) fn blocked_by(&self, claim: &Claim) -> Option<Blocked> {
        let is_behind = |key: &str| {
            let first = self.keys.get(key).and_then(|key| key.waiting.first());
            first.is_some_and(|first| *first < claim.position())
        };
        let is_held = |key: &str| self.holders(key).next().is_some();
        if claim
            .key()
            .is_some_and(|key| is_held(key) || is_behind(key))
        {
            return Some(Blocked::Key);
        }
        let queue = claim.queue().and_then(|queue| self.queues.get(queue));
        if queue.is_some_and(|queue| !queue.is_open()) {
            return Some(Blocked::Queue);
        }
        let limits = self.check_limits(claim, &BTreeSet::new());
        limits.err().map(Blocked::Limit)
    }

    /// Checks the limits as if the holders of the claim's key had ended.
    pub(super) fn check_limits_without_holders(&self, claim: &Claim) -> Result<(), Refused> {
        let holders = claim.key().into_iter().flat_map(|key| self.holders(key));
        self.check_limits(claim, &holders.map(|holder| holder.seq).collect())
    }

    /// Checks every limit, not counting the tasks in `leaving`.
    pub(super) fn check_limits(
        &self,
        claim: &Claim,
        leaving: &BTreeSet<Seq>,
    ) -> Result<(), Refused> {
        let leaving = |counts: &dyn Fn(&Claim) -> bool| {
            let left = leaving.iter().filter_map(|seq| self.admitted.get(seq));
            left.filter(|claim| counts(claim)).count()
        };
        let (running, max) = (self.admitted.len(), self.limits.tasks);
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
        for (label, value, max) in claim.limited_labels(&self.limits) {
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

    /// The tasks that have a key: the one whose id it is, and the one that claimed it.
    pub(super) fn holders(&self, key: &str) -> impl Iterator<Item = &Claim> {
        let own = self.places.get(key).and_then(|place| match place {
            Place::Admitted(seq) => self.admitted.get(seq),
            Place::Waiting(position) => self.waiting.get(position),
        });
        let claimed = self.keys.get(key).into_iter().flat_map(|key| &key.holders);
        own.into_iter()
            .chain(claimed.filter_map(|seq| self.admitted.get(seq)))
    }

    /// The tasks that wait for a key, the first in line first.
    pub(super) fn in_line(&self, key: &str) -> impl Iterator<Item = &Claim> {
        let waiting = self.keys.get(key).into_iter().flat_map(|key| &key.waiting);
        waiting.filter_map(|position| self.waiting.get(position))
    }

    /// The holder of a key or, if it is free, the first task in line for it.
    pub(super) fn holder_or_next(&self, key: &str) -> Option<TaskId> {
        let first = self.holders(key).chain(self.in_line(key)).next();
        first.map(|claim| claim.id.clone())
    }

    /// The task that has a key and keeps it: the holder, unless it is stopping or about to be replaced;
    /// else the first in line that is not stopping.
    pub(super) fn holder_that_stays(
        &self,
        key: &str,
        is_stopping: impl Fn(&TaskId) -> bool,
    ) -> Option<&Claim> {
        let next = self.in_line(key).next().map(Claim::position);
        let is_replaced = matches!(next, Some(QueuePosition::Replacing(_)));
        let holders = self.holders(key).filter(|_| !is_replaced);
        holders
            .chain(self.in_line(key))
            .find(|claim| !is_stopping(&claim.id))
    }
}
