//! Restarts on failure: the rule, and the attempts of a task that has one.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::{LeaderEnd, Moment, Monotonic, Outcome, Task};

/// The values of a rule, unless the request sets them.
pub(crate) const DEFAULT_RESTART_DELAY: Duration = Duration::from_secs(1);
pub(crate) const DEFAULT_MAX_RESTART_DELAY: Duration = Duration::from_secs(30);
pub(crate) const DEFAULT_MAX_RESTARTS: u32 = 5;
pub(crate) const DEFAULT_RESET_AFTER: Duration = Duration::from_secs(60);

/// The rule by which a task whose leader fails is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restart {
    /// The delay after the first failure. It doubles with every further one in a row.
    pub delay: Duration,
    pub max_delay: Duration,
    /// The most restarts in a row; `None` sets no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<u32>,
    /// The run after which a failure is the first one in a row again.
    pub reset_after: Duration,
}

/// The attempts of a task, once the first one has failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempts {
    /// The number of the present attempt, or of the one that is to begin.
    pub latest: u32,
    /// The failures in a row before it.
    pub failures: u32,
    /// The offset at which its output begins.
    pub output_begin: u64,
    /// The end of the attempt before it.
    pub failed: LeaderEnd,
    /// The CPU time of the attempts before it.
    #[serde(default)]
    pub cpu: Duration,
    /// The largest memory of a process in them, in bytes.
    #[serde(default)]
    pub max_memory: u64,
    pub phase: AttemptPhase,
}

/// The state of the latest attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptPhase {
    /// It begins at this time.
    Waits(Moment),
    /// Its leader has run since this time.
    Runs(Moment),
}

impl Restart {
    /// The delay after so many failures in a row.
    fn delay_after(&self, failures: u32) -> Duration {
        let doublings = failures.saturating_sub(1).min(30);
        let delay = self.delay.saturating_mul(1 << doublings);
        delay.min(self.max_delay)
    }
}

impl Outcome {
    /// True for an end after which a task is started again, if it has a rule for it.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Exited(code) => *code != 0,
            Self::Signalled { .. } | Self::SpawnFailed(_) => true,
            Self::Unknown(_) | Self::Worker(_) => false,
        }
    }
}

impl Task {
    /// The number of its present attempt, or of the one that is to begin.
    pub fn attempt(&self) -> u32 {
        self.attempts.as_ref().map_or(1, |attempts| attempts.latest)
    }

    /// The offset at which the output of that attempt begins.
    pub fn output_begin(&self) -> u64 {
        let attempts = self.attempts.as_ref();
        attempts.map_or(0, |attempts| attempts.output_begin)
    }

    /// The time at which the next attempt is due, between two attempts.
    pub fn next_attempt(&self) -> Option<Moment> {
        match self.attempts.as_ref().filter(|_| self.is_live())?.phase {
            AttemptPhase::Waits(due) => Some(due),
            AttemptPhase::Runs(_) => None,
        }
    }

    /// The start of the present attempt.
    pub fn attempt_started(&self) -> Option<Monotonic> {
        match self.attempts.as_ref().map(|attempts| attempts.phase) {
            None => self.started.as_ref().map(|started| started.at.mono),
            Some(AttemptPhase::Runs(since)) => Some(since.mono),
            Some(AttemptPhase::Waits(_)) => None,
        }
    }

    /// The attempts after a failure of the present one; `None` if it was the last.
    pub(crate) fn attempts_after(
        &self,
        failed: &LeaderEnd,
        output_end: u64,
        now: Moment,
    ) -> Option<Attempts> {
        let rule = self.spec.restart?;
        self.started
            .as_ref()
            .filter(|_| failed.outcome.is_failure())?;
        let run = self
            .attempt_started()
            .map(|since| failed.at.mono.since(since));
        let in_a_row = self
            .attempts
            .as_ref()
            .map_or(0, |attempts| attempts.failures);
        let failures = match run {
            Some(run) if run >= rule.reset_after => 1,
            Some(_) | None => in_a_row.saturating_add(1),
        };
        if rule.max_restarts.is_some_and(|max| failures > max) {
            return None;
        }
        let delay = rule.delay_after(failures);
        Some(Attempts {
            latest: self.attempt().checked_add(1)?,
            failures,
            output_begin: output_end,
            failed: failed.clone(),
            cpu: Duration::ZERO,
            max_memory: 0,
            phase: AttemptPhase::Waits(now.saturating_add(delay)),
        })
    }
}
