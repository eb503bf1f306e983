//! Readiness: the looks at whether a task is ready, and the time that it has for it.
//!
//! ```text
//!  start ── 25 ms ──> look ── not yet: 50 ms, 100 ms, ... interval ──> look ── ready ──> READY
//!    └──── timeout ──> NOT_READY, and a stop where the policy asks for one; else the looks go on
//! ```
//!
//! Only the result is a fact of the task. The looks are not: a restarted server begins anew. Where a pattern
//! decides there are no looks: the search of the output gives the result.

use std::time::Duration;

use super::{Effect, Life};
use crate::task::{EventKind, Moment, Monotonic, OnReadyTimeout, OrphanPolicy, Ready, StopCause};

/// The time from the start to the first look. It doubles with every look, up to the interval.
const FIRST_LOOK: Duration = Duration::from_millis(25);

/// The result of one look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Probed {
    Ready,
    NotYet,
}

/// The looks at a task that is not ready yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Probing {
    /// The number of looks that are over.
    looks: u32,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// No look was taken by this server.
    #[default]
    First,
    Running,
    Next(Monotonic),
}

impl Life {
    /// The rule of a task that is to be looked at.
    pub(in crate::supervisor) fn awaited_readiness(&self) -> Option<&Ready> {
        let task = &self.task;
        let is_abandoned =
            task.leader_end.is_some() && task.spec.orphan_policy != OrphanPolicy::Track;
        let is_over = self.is_tree_gone() || task.stop.is_some() || is_abandoned;
        let is_awaited = task.attempt_started().is_some() && task.ready.is_none() && !is_over;
        task.spec.ready.as_ref().filter(|_| is_awaited)
    }

    /// The time of the next look; `None` while one is under way, and where none is needed.
    pub(super) fn next_probe(&self) -> Option<Monotonic> {
        if self.awaited_readiness()?.pattern().is_some() {
            return None;
        }
        match self.probing.phase {
            Phase::First => Some(self.task.attempt_started()?.saturating_add(FIRST_LOOK)),
            Phase::Running => None,
            Phase::Next(due) => Some(due),
        }
    }

    pub(super) fn ready_deadline(&self) -> Option<Monotonic> {
        let timeout = self.awaited_readiness()?.timeout?;
        let started = self.task.attempt_started()?;
        let is_told = self.task.not_ready.is_some();
        (!is_told).then(|| started.saturating_add(timeout))
    }

    pub(super) fn probe_due(&mut self) -> Vec<Effect> {
        if self.awaited_readiness().is_none() {
            return Vec::new();
        }
        self.probing.phase = Phase::Running;
        vec![Effect::Probe]
    }

    pub(super) fn probed(&mut self, result: Probed, now: Moment) -> Vec<Effect> {
        let Some(interval) = self.awaited_readiness().map(|ready| ready.interval) else {
            return Vec::new();
        };
        match result {
            Probed::Ready => {
                self.task.ready = Some(now.wall);
                vec![Effect::Record(EventKind::Ready)]
            }
            Probed::NotYet => {
                self.probing.looks += 1;
                let delay = FIRST_LOOK.saturating_mul(1 << self.probing.looks.min(30));
                let next = now.mono.saturating_add(delay.min(interval));
                self.probing.phase = Phase::Next(next);
                Vec::new()
            }
        }
    }

    pub(super) fn ready_timed_out(&mut self, now: Moment) -> Vec<Effect> {
        let Some(action) = self.awaited_readiness().map(|ready| ready.on_timeout) else {
            return Vec::new();
        };
        if self.task.not_ready.is_some() {
            return Vec::new();
        }
        self.task.not_ready = Some(now.wall);
        let mut effects = vec![Effect::Record(EventKind::NotReady)];
        match action {
            OnReadyTimeout::Notify => {}
            OnReadyTimeout::Cancel => {
                effects.extend(self.stop_because_of(StopCause::NotReady, now))
            }
        }
        effects
    }
}
