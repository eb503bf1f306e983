//! Stopping: what begins a stop, what makes it more urgent, and what goes out because of it.

use super::{Children, Effect, Life, heeler};
use crate::task::{
    Actor, EventKind, OrphanPolicy, Proof, SentSignal, Signal, SignalTarget, Stop, StopCause,
    StopMode, Survivor, Timestamp,
};

const SIGKILL: Signal = Signal(9);

/// Who wants a task stopped, why and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct StopRequest {
    pub(in crate::supervisor) cause: StopCause,
    pub(in crate::supervisor) actor: Actor,
    pub(in crate::supervisor) reason: Option<String>,
    pub(in crate::supervisor) mode: StopMode,
    pub(in crate::supervisor) cascade: bool,
}

/// What a shim is told about the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum StopOrder {
    /// Ask the tree, with this signal.
    Ask(Signal),
    /// Kill it.
    Kill,
    /// Leave it to itself.
    Abandon,
}

impl Life {
    /// What its shim was last told about the end.
    pub(in crate::supervisor) fn order(&self) -> Option<StopOrder> {
        if !self.task.is_live() {
            return None;
        }
        // Nobody is there who could be told.
        if self.task.is_waiting() {
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
            StopMode::Graceful(policy) if !stop.killed => Some(StopOrder::Ask(policy.signal)),
            StopMode::Graceful(_) | StopMode::Force => Some(StopOrder::Kill),
        }
    }

    pub(super) fn stop_requested(&mut self, request: StopRequest, now: Timestamp) -> Vec<Effect> {
        let is_waiting = self.task.is_waiting();
        match &mut self.task.stop {
            None => self.begin_stop(request, now),
            // Only more urgency, or more reach, changes a stop that is under way: it keeps its
            // cause and its clock.
            Some(stop) => {
                let force = request.mode == StopMode::Force && stop.mode != StopMode::Force;
                let kill = force && !stop.killed && !is_waiting;
                let reach = request.cascade && (force || !stop.cascade);
                if !force && !reach {
                    return Vec::new();
                }
                stop.cascade |= request.cascade;
                if force {
                    stop.mode = StopMode::Force;
                }
                let mut effects = vec![Effect::Record(EventKind::Stopping)];
                if reach {
                    self.children = Children::Awaited;
                    effects.push(Effect::StopChildren);
                }
                if kill {
                    effects.extend(self.kill(now));
                }
                effects
            }
        }
    }

    fn begin_stop(&mut self, request: StopRequest, now: Timestamp) -> Vec<Effect> {
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
            // There is nobody to be told.
            _ if self.task.is_waiting() => {}
            (StopMode::Graceful(policy), Some(_)) => {
                effects.push(Effect::Signal(policy.signal));
                if policy.grace.is_zero() {
                    effects.extend(self.kill(now));
                }
            }
            // What has not begun has nothing to tidy up.
            (StopMode::Graceful(_), None) | (StopMode::Force, _) => effects.extend(self.kill(now)),
        }
        effects
    }

    pub(super) fn grace_over(&mut self, now: Timestamp) -> Vec<Effect> {
        match &self.task.stop {
            Some(stop) if !stop.killed && self.over.is_none() && !self.task.is_waiting() => {
                self.kill(now)
            }
            Some(_) | None => Vec::new(),
        }
    }

    fn kill(&mut self, now: Timestamp) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            stop.killed = true;
            stop.signals.push(SentSignal {
                signal: SIGKILL,
                at: now,
                target: SignalTarget::Tree,
            });
        }
        vec![Effect::Kill]
    }

    /// The stop signal goes out before the kill, though it may be reported after it.
    pub(super) fn signalled(&mut self, sent: SentSignal) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            let is_kill = |sent: &SentSignal| sent.target == SignalTarget::Tree;
            let kill = stop.signals.iter().position(is_kill);
            stop.signals
                .insert(kill.unwrap_or(stop.signals.len()), sent);
        }
        Vec::new()
    }

    pub(super) fn kill_overdue(&mut self, survivors: Vec<Survivor>, now: Timestamp) -> Vec<Effect> {
        // Where nobody has asked for a stop, nobody waits to hear how it goes.
        let Some(stop) = &mut self.task.stop else {
            return Vec::new();
        };
        stop.proof = Some(Proof::survivors(survivors, now));
        vec![Effect::Record(EventKind::KillOverdue)]
    }

    /// Its time is over, whichever that was.
    pub(super) fn run_out(&mut self, cause: StopCause, now: Timestamp) -> Vec<Effect> {
        if self.task.stop.is_some() || self.over.is_some() {
            return Vec::new();
        }
        let request = StopRequest {
            cause,
            actor: heeler(),
            reason: None,
            mode: StopMode::Graceful(self.task.spec.stop),
            cascade: false,
        };
        self.begin_stop(request, now)
    }
}
