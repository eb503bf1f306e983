//! Stops: their begin, their escalation, the signals they send and the kill deadline.

use std::time::Duration;

use super::{Children, Effect, KILL_DEADLINE, Life};
use crate::task::{
    Actor, EventKind, Moment, OrphanPolicy, OutputLimit, Proof, SentSignal, Signal, SignalTarget,
    Stop, StopCause, StopMode, Survivor,
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
        if !self.task.is_live() || self.task.is_waiting() {
            return None;
        }
        let Some(stop) = &self.task.stop else {
            return match (self.task.spec.orphan_policy, &self.task.leader_end) {
                (OrphanPolicy::Kill, Some(_)) => Some(StopOrder::Kill),
                (OrphanPolicy::Abandon, Some(_)) => Some(StopOrder::Abandon),
                (OrphanPolicy::Track, _) | (_, None) => None,
            };
        };
        match stop.mode {
            StopMode::Graceful(policy) if !stop.killed => Some(StopOrder::Signal(policy.signal)),
            StopMode::Graceful(_) | StopMode::Force => Some(StopOrder::Kill),
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
        let mode = request.mode;
        self.task.stop = Some(Stop {
            cause: request.cause,
            actor: request.actor,
            reason: request.reason,
            requested: now,
            mode,
            cascade: request.cascade,
            killed: false,
            signals: Vec::new(),
            proof: None,
        });
        let mut effects = vec![Effect::Record(EventKind::Stopping)];
        if request.cascade {
            self.children = Children::Awaited;
            effects.push(Effect::StopChildren);
        }
        match (mode, &self.task.started) {
            // A queued task has no process to signal.
            _ if self.task.is_waiting() => {}
            (StopMode::Graceful(policy), Some(_)) => {
                effects.push(Effect::Signal(policy.signal));
                if policy.grace.is_zero() {
                    effects.extend(self.kill(now));
                }
            }
            // A leader that does not run yet has nothing to clean up.
            (StopMode::Graceful(_), None) | (StopMode::Force, _) => effects.extend(self.kill(now)),
        }
        effects
    }

    /// A second request can only force the stop or extend it to the children. The stop keeps its
    /// cause, and its grace is not restarted.
    fn escalate_stop(&mut self, request: &StopRequest, now: Moment) -> Vec<Effect> {
        let is_waiting = self.task.is_waiting();
        let Some(stop) = &mut self.task.stop else {
            return Vec::new();
        };
        let force = request.mode == StopMode::Force && stop.mode != StopMode::Force;
        let kill = force && !stop.killed && !is_waiting;
        let reach_children = request.cascade && (force || !stop.cascade);
        if !force && !reach_children {
            return Vec::new();
        }
        stop.cascade |= request.cascade;
        if force {
            stop.mode = StopMode::Force;
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
        match &self.task.stop {
            Some(stop) if !stop.killed && !self.is_tree_gone() && !self.task.is_waiting() => {
                self.kill(now)
            }
            Some(_) | None => Vec::new(),
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
