//! Stops: their begin, their escalation, the signals they send and the kill deadline.

use std::time::Duration;

use super::{Children, Effect, KILL_DEADLINE, Life};
use crate::task::{
    Actor, EventKind, Moment, OrphanPolicy, OutputLimit, Proof, SentSignal, Signal, SignalTarget,
    SoftPhase, Stop, StopCause, StopMode, StopPhase, StopPolicy, Survivor,
};

const SIGKILL: Signal = Signal(9);
/// The retry interval while an overdue kill has no known survivors.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct StopRequest {
    pub(in crate::supervisor) cause: StopCause,
    pub(in crate::supervisor) actor: Actor,
    pub(in crate::supervisor) reason: Option<String>,
    pub(in crate::supervisor) mode: StopMode,
    pub(in crate::supervisor) cascade: bool,
}

/// The order about the end of the tree that a shim has, or must get again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum StopOrder {
    /// Send this signal to the tree.
    Signal(Signal),
    /// Kill the tree.
    Kill,
    /// Leave the orphans alone.
    Abandon,
}

impl Life {
    /// The latest order about the end; `None` where there is none, or no shim to send it to.
    pub(in crate::supervisor) fn stop_order(&self) -> Option<StopOrder> {
        if !self.task.is_live() || self.task.is_waiting() || self.task.is_hosted() {
            return None;
        }
        // The shim of a task between two attempts has nothing to stop.
        if self.is_between_attempts() {
            return None;
        }
        let Some(stop) = &self.task.stop else {
            if self.are_orphans_killed {
                return Some(StopOrder::Kill);
            }
            return match (self.task.spec.orphan_policy, &self.task.leader_end) {
                (OrphanPolicy::Kill, Some(_)) => Some(StopOrder::Kill),
                (OrphanPolicy::Abandon, Some(_)) => Some(StopOrder::Abandon),
                (OrphanPolicy::Track, _) | (_, None) => None,
            };
        };
        match stop.phase() {
            StopPhase::Soft { .. } => None,
            StopPhase::Signal { policy, .. } => Some(StopOrder::Signal(policy.signal)),
            StopPhase::Kill => Some(StopOrder::Kill),
        }
    }

    pub(super) fn stop_requested(&mut self, request: StopRequest, now: Moment) -> Vec<Effect> {
        match self.task.stop {
            None => self.begin_stop(request, now),
            Some(_) => self.escalate_stop(&request, now),
        }
    }

    /// Stops the task for a cause of the server's own, unless it is being stopped already.
    pub(super) fn stop_because_of(&mut self, cause: StopCause, now: Moment) -> Vec<Effect> {
        if self.task.stop.is_some() || self.tree_ended.is_some() {
            return Vec::new();
        }
        let request = StopRequest {
            cause,
            actor: Actor::heeler(),
            reason: None,
            mode: match cause {
                // The shim has begun the kill.
                StopCause::OutputLimit => StopMode::Force,
                StopCause::Cancel
                | StopCause::Timeout
                | StopCause::Shutdown
                | StopCause::IdleTimeout
                | StopCause::NotReady
                | StopCause::ClientDisconnected
                | StopCause::Replaced => StopMode::Graceful(self.task.spec.stop),
            },
            cascade: false,
        };
        self.begin_stop(request, now)
    }

    /// Records the limit of the output, once.
    pub(super) fn output_limited(&mut self, limit: OutputLimit) -> Vec<Effect> {
        if self.task.output_limit.is_some() {
            return Vec::new();
        }
        self.task.output_limit = Some(limit);
        vec![Effect::Record(EventKind::OutputLimit)]
    }

    fn begin_stop(&mut self, request: StopRequest, now: Moment) -> Vec<Effect> {
        self.task.stop = Some(Stop {
            cause: request.cause,
            actor: request.actor,
            reason: request.reason,
            requested: now,
            mode: request.mode,
            cascade: request.cascade,
            soft: self.soft_phase(request.mode, now),
            killed: false,
            signals: Vec::new(),
            proof: None,
        });
        let mut effects = vec![Effect::Record(EventKind::Stopping)];
        if request.cascade {
            self.children = Children::Awaited;
            effects.push(Effect::StopChildren);
        }
        // A queued task has no process to signal, and one between two attempts neither.
        if !self.task.is_waiting() && !self.is_between_attempts() {
            effects.extend(self.enter_phase(now));
        }
        effects
    }

    /// The soft phase of a stop that begins now. A worker that has delivered its result needs none.
    fn soft_phase(&self, mode: StopMode, now: Moment) -> Option<SoftPhase> {
        let is_working = self.task.started.is_some()
            && self.task.leader_end.is_none()
            && self.task.result.is_none();
        match mode {
            StopMode::Graceful(StopPolicy { soft_grace, .. })
                if is_working && !soft_grace.is_zero() && self.worker_listens(now) =>
            {
                Some(SoftPhase {
                    grace: soft_grace,
                    over: None,
                })
            }
            StopMode::Graceful(_) | StopMode::Force => None,
        }
    }

    /// The effects of the phase that the stop has just reached. The worker is told by the record.
    fn enter_phase(&mut self, now: Moment) -> Vec<Effect> {
        let phase = self.task.stop.as_ref().map(Stop::phase);
        match (phase, &self.task.started) {
            (None | Some(StopPhase::Soft { .. }), _) => Vec::new(),
            _ if self.task.is_hosted() => Vec::new(),
            (Some(StopPhase::Signal { policy, .. }), Some(_)) => {
                let mut effects = vec![Effect::Signal(policy.signal)];
                if policy.grace.is_zero() {
                    effects.extend(self.kill(now));
                }
                effects
            }
            // A leader that does not run yet has nothing to clean up.
            (Some(StopPhase::Signal { .. }), None) | (Some(StopPhase::Kill), _) => self.kill(now),
        }
    }

    pub(super) fn soft_grace_over(&mut self, now: Moment) -> Vec<Effect> {
        let has_no_tree = self.is_tree_gone() || self.is_between_attempts();
        if has_no_tree || self.task.is_waiting() || !self.end_soft_phase(now) {
            return Vec::new();
        }
        let mut effects = vec![Effect::Record(EventKind::Stopping)];
        effects.extend(self.enter_phase(now));
        effects
    }

    /// Ends the soft phase; returns false if the stop is not in it.
    fn end_soft_phase(&mut self, now: Moment) -> bool {
        let soft = self.task.stop.as_mut().and_then(|stop| stop.soft.as_mut());
        match soft {
            Some(soft @ SoftPhase { over: None, .. }) => {
                soft.over = Some(now);
                true
            }
            Some(_) | None => false,
        }
    }

    /// A second request can only hasten or force the stop, or extend it to the children. The stop keeps its
    /// cause, and its grace does not become longer.
    fn escalate_stop(&mut self, request: &StopRequest, now: Moment) -> Vec<Effect> {
        let has_tree =
            !self.task.is_waiting() && !self.task.is_hosted() && !self.is_between_attempts();
        let Some(stop) = &mut self.task.stop else {
            return Vec::new();
        };
        let force = request.mode == StopMode::Force && stop.mode != StopMode::Force;
        let kill = force && !stop.killed && has_tree;
        let reach_children = request.cascade && (force || !stop.cascade);
        let hastens = match request.mode {
            StopMode::Graceful(policy) => stop.hasten(policy, now.mono),
            StopMode::Force => false,
        };
        if !force && !reach_children && !hastens {
            return Vec::new();
        }
        stop.cascade |= request.cascade;
        if force {
            stop.mode = StopMode::Force;
            self.end_soft_phase(now);
        }
        let mut effects = vec![Effect::Record(EventKind::Stopping)];
        if reach_children {
            self.children = Children::Awaited;
            effects.push(Effect::StopChildren);
        }
        if kill {
            effects.extend(self.kill(now));
        }
        effects
    }

    pub(super) fn grace_over(&mut self, now: Moment) -> Vec<Effect> {
        if self.is_tree_gone() || self.task.is_waiting() || self.is_between_attempts() {
            return Vec::new();
        }
        match self.task.stop.as_ref().map(Stop::phase) {
            None | Some(StopPhase::Soft { .. }) => Vec::new(),
            Some(StopPhase::Signal { .. } | StopPhase::Kill) if self.task.is_hosted() => {
                self.end_without_worker(now)
            }
            Some(StopPhase::Signal { .. }) => self.kill(now),
            Some(StopPhase::Kill) => Vec::new(),
        }
    }

    fn kill(&mut self, now: Moment) -> Vec<Effect> {
        self.kill_deadline = Some(now.mono.saturating_add(KILL_DEADLINE));
        if let Some(stop) = &mut self.task.stop {
            stop.killed = true;
            stop.signals.push(SentSignal {
                signal: SIGKILL,
                at: now.wall,
                target: SignalTarget::Tree,
            });
        }
        vec![Effect::Kill]
    }

    /// The stop signal goes out before the kill, though the shim may report it later.
    pub(super) fn signal_sent(&mut self, sent: SentSignal) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            let is_kill = |sent: &SentSignal| sent.target == SignalTarget::Tree;
            let kill = stop.signals.iter().position(is_kill);
            stop.signals
                .insert(kill.unwrap_or(stop.signals.len()), sent);
        }
        Vec::new()
    }

    /// Looks again after a while if no survivor was found.
    pub(super) fn kill_overdue(&mut self, survivors: Vec<Survivor>, now: Moment) -> Vec<Effect> {
        self.kill_deadline = match survivors.is_empty() {
            true => self
                .kill_deadline
                .map(|_| now.mono.saturating_add(LOOK_AGAIN)),
            false => None,
        };
        self.survivors = survivors;
        self.name_survivors(now)
    }

    pub(super) fn child_kill_overdue(
        &mut self,
        survivors: Vec<Survivor>,
        now: Moment,
    ) -> Vec<Effect> {
        self.child_survivors.extend(survivors);
        self.name_survivors(now)
    }

    /// Records the present survivors if one of them was not named before. A kill without a stop, of
    /// orphans, has no one to report to.
    fn name_survivors(&mut self, now: Moment) -> Vec<Effect> {
        let Some(stop) = &mut self.task.stop else {
            return Vec::new();
        };
        let present: Vec<Survivor> = self
            .survivors
            .iter()
            .chain(&self.child_survivors)
            .cloned()
            .collect();
        let named = stop.survivors();
        let is_named = |survivor: &Survivor| named.iter().any(|one| one.pid == survivor.pid);
        if present.iter().all(is_named) {
            return Vec::new();
        }
        stop.proof = Some(Proof::survivors(present, now.wall));
        vec![Effect::Record(EventKind::KillOverdue)]
    }
}
