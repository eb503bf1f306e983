//! The way from the queue to a running leader.

use super::{Clients, Effect, Life, TreeEnded};
use crate::task::{
    EventKind, LeaderEnd, Moment, Outcome, ProofMethod, ProofResult, SpawnFailure, Started,
};

impl Life {
    pub(super) fn admitted(&mut self, now: Moment) -> Vec<Effect> {
        match &mut self.task.queued {
            Some(queued) if queued.admitted.is_none() && self.task.stop.is_none() => {
                queued.admitted = Some(now.wall);
                // The reattach window starts now: a queued task has nothing to attach to.
                if let Clients::None(_) = self.clients {
                    self.clients = Clients::None(now.mono);
                }
                vec![Effect::Record(EventKind::Admitted)]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// True for a queued task with a stop request: nothing is left but to record its end.
    pub(in crate::supervisor) fn is_stopped_while_queued(&self) -> bool {
        self.task.is_waiting() && self.task.stop.is_some() && !self.is_tree_gone()
    }

    pub(super) fn stopped_while_queued(&mut self, now: Moment) -> Vec<Effect> {
        match self.is_stopped_while_queued() {
            true => self.never_started(None, now),
            false => Vec::new(),
        }
    }

    pub(super) fn started(&mut self, started: Started) -> Vec<Effect> {
        if self.is_between_attempts() {
            return self.restarted(&started);
        }
        if self.task.started.is_some() {
            return Vec::new();
        }
        self.task.started = Some(started);
        vec![Effect::Record(EventKind::Started)]
    }

    pub(super) fn spawn_failed(&mut self, failure: SpawnFailure, now: Moment) -> Vec<Effect> {
        let end = LeaderEnd {
            outcome: Outcome::SpawnFailed(failure),
            at: now,
        };
        self.never_started(Some(end), now)
    }

    fn never_started(&mut self, leader: Option<LeaderEnd>, now: Moment) -> Vec<Effect> {
        let proof = ProofResult::Proven(ProofMethod::NeverStarted);
        let end = TreeEnded::unobserved(&self.task, leader, proof, 0, now.wall);
        match self.restart_after(&end, now) {
            Some(effects) => effects,
            None => self.tree_ended(end, now.wall),
        }
    }
}
