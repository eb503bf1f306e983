//! Restarts on failure: the end of an attempt, the delay, and the begin of the next one.
//!
//! ```text
//!  attempt fails ── orphans are killed, the tree is empty ──> RESTARTING ── delay ──> order to the shim ──> RESTARTED
//!                                                               ^ │                         │
//!                                                               │ └─ stop ──> ENDED         │ cannot be started
//!                                                               └───────────────────────────┘
//! ```
//!
//! RESTARTING is the intent of the next attempt: it is durable before the order. The order names the attempt, so a
//! server that repeats it starts nothing twice.

use std::time::Duration;

use super::{Effect, Life, Probing, TreeEnded};
use crate::task::{AttemptPhase, Attempts, EventKind, LeaderEnd, Moment, Monotonic, Started};

/// The pause before an attempt that waits for the record of its intent is looked at again.
const RECORD_RETRY: Duration = Duration::from_secs(1);

/// The next attempt, as far as this server has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum NextAttempt {
    /// It is due at the recorded time.
    #[default]
    Recorded,
    /// Its intent is not recorded yet: it is due at this time.
    Postponed(Monotonic),
    /// The shim has the order.
    Ordered,
}

impl Life {
    /// True between the end of an attempt and the begin of the next one.
    pub(in crate::supervisor) fn is_between_attempts(&self) -> bool {
        self.task.next_attempt().is_some() && !self.is_tree_gone()
    }

    /// True for a task that was stopped between two attempts: its shim is to be ended.
    pub(in crate::supervisor) fn is_stopped_between_attempts(&self) -> bool {
        self.is_between_attempts() && self.task.stop.is_some()
    }

    /// True if a shim may be about to start an attempt.
    pub(in crate::supervisor) fn is_attempt_ordered(&self) -> bool {
        self.is_between_attempts() && self.next_attempt == NextAttempt::Ordered
    }

    /// True if the leader of the present attempt is not known yet.
    pub(in crate::supervisor) fn is_start_awaited(&self) -> bool {
        self.task.started.is_none() || self.is_between_attempts()
    }

    /// The time of the next attempt, unless it was ordered.
    pub(super) fn restart_due(&self) -> Option<Monotonic> {
        let due = self
            .task
            .next_attempt()
            .filter(|_| self.is_between_attempts())?;
        match self.next_attempt {
            NextAttempt::Recorded => Some(due.mono),
            NextAttempt::Postponed(due) => Some(due),
            NextAttempt::Ordered => None,
        }
    }

    /// True if another attempt follows an end of the present one.
    pub(in crate::supervisor) fn is_restarted_after(&self, end: &LeaderEnd, now: Moment) -> bool {
        let is_over = self.task.stop.is_some() || self.task.leader_end.is_some();
        !is_over && self.task.attempts_after(end, 0, now).is_some()
    }

    /// Waits for the next attempt, if there is one after this end; else nothing changes.
    pub(super) fn restart_after(&mut self, end: &TreeEnded, now: Moment) -> Option<Vec<Effect>> {
        let is_over = self.is_tree_gone() || self.task.stop.is_some();
        if is_over || end.capture_error.is_some() || end.abandoned {
            return None;
        }
        let failed = self.task.leader_end.as_ref().or(end.leader.as_ref())?;
        let output_end = end.output_bytes.max(self.task.output_bytes);
        let attempts = self.task.attempts_after(failed, output_end, now)?;
        let attempts = Attempts {
            cpu: end.cpu,
            max_memory: end.max_memory,
            ..attempts
        };
        let task = &mut self.task;
        task.attempts = Some(Box::new(attempts));
        task.output_bytes = output_end;
        task.leader_end = None;
        // A last line without a line end was searched as a whole: the place behind it is that of the next byte.
        for matches in task.matches.values_mut() {
            matches.searched = matches.searched.min(output_end);
        }
        (task.ready, task.not_ready) = (None, None);
        (task.stale, task.needs_input) = (None, None);
        self.next_attempt = NextAttempt::Recorded;
        self.are_orphans_killed = false;
        (self.last_activity, self.last_output) = (None, None);
        self.probing = Probing::default();
        self.input_looks = 0;
        self.survivors = Vec::new();
        self.kill_deadline = None;
        Some(vec![
            Effect::Record(EventKind::Restarting),
            Effect::AwaitAttempt,
        ])
    }

    pub(super) fn restart_postponed(&mut self, now: Moment) -> Vec<Effect> {
        let due = now.mono.saturating_add(RECORD_RETRY);
        self.next_attempt = NextAttempt::Postponed(due);
        Vec::new()
    }

    /// Orders the next attempt.
    pub(super) fn restart_is_due(&mut self) -> Vec<Effect> {
        if !self.is_between_attempts() || self.task.stop.is_some() {
            return Vec::new();
        }
        self.next_attempt = NextAttempt::Ordered;
        vec![Effect::BeginAttempt]
    }

    /// The leader of the next attempt runs. The task keeps the time of its first start.
    pub(super) fn restarted(&mut self, started: &Started) -> Vec<Effect> {
        let (Some(first), Some(attempts)) = (&mut self.task.started, &mut self.task.attempts)
        else {
            return Vec::new();
        };
        first.by = started.by;
        attempts.phase = AttemptPhase::Runs(started.at);
        self.next_attempt = NextAttempt::Recorded;
        vec![Effect::Record(EventKind::Restarted)]
    }
}
