//! The choice of the tasks to remove, of candidates that are sorted by their end.

use std::time::Duration;

use crate::{
    config::Retention,
    journal::{Candidate, FinishedTotals},
    task::{Revision, TaskId, Timestamp},
};

/// The time for which a task that finished in the foreground is kept once its end was delivered: its
/// client has the result, and may look at it once more.
const KEEP_FOREGROUND_FOR: Duration = Duration::from_secs(10 * 60);
/// The most such tasks. A host runs a command in the foreground every few seconds, and the journal
/// does not grow by them.
pub(super) const KEEP_FOREGROUND: u32 = 1_000;

/// The amount beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Excess {
    pub(super) tasks: u64,
    /// The bytes of output that must go, of finished tasks first.
    pub(super) stored_bytes: u64,
}

impl Excess {
    /// The excess of finished tasks, where so many bytes of output are too many.
    pub(super) fn of(finished: FinishedTotals, limits: &Retention, stored_bytes: u64) -> Self {
        Self {
            tasks: finished.tasks.saturating_sub(limits.finished),
            stored_bytes,
        }
    }

    pub(super) fn is_none(self) -> bool {
        self.tasks == 0 && self.stored_bytes == 0
    }

    /// Chooses tasks, oldest first, until the rest is within the limits and none is too old.
    pub(super) fn choose(
        mut self,
        candidates: &[Candidate],
        age: Option<Duration>,
        most: usize,
    ) -> Vec<TaskId> {
        let now = Timestamp::now();
        let too_old =
            |candidate: &Candidate| age.is_some_and(|age| now.since(candidate.ended) > age);
        let mut chosen = Vec::new();
        for candidate in candidates.iter().take(most) {
            if self.is_none() && !too_old(candidate) {
                break;
            }
            self.tasks = self.tasks.saturating_sub(1);
            self.stored_bytes = self.stored_bytes.saturating_sub(candidate.stored_bytes);
            chosen.push(candidate.id.clone());
        }
        chosen
    }
}

/// Chooses, of delivered foreground tasks, those that ended at `beyond` or before, which the latest
/// [`KEEP_FOREGROUND`] follow, and those that ended too long ago.
pub(super) fn expired_foreground(
    candidates: &[Candidate],
    beyond: Option<Revision>,
    now: Timestamp,
) -> Vec<TaskId> {
    let is_expired = |candidate: &&Candidate| {
        beyond.is_some_and(|beyond| candidate.end <= beyond)
            || now.since(candidate.ended) > KEEP_FOREGROUND_FOR
    };
    let expired = candidates.iter().take_while(is_expired);
    expired.map(|candidate| candidate.id.clone()).collect()
}

/// Chooses tasks, oldest first, until their `bytes` make up a shortage. A task without bytes in memory
/// is not chosen.
pub(super) fn covering(
    shortage: u64,
    candidates: &[Candidate],
    bytes: impl Fn(&TaskId) -> u64,
) -> Vec<TaskId> {
    let mut missing = shortage;
    let mut chosen = Vec::new();
    for candidate in candidates {
        if missing == 0 {
            break;
        }
        let freed = bytes(&candidate.id);
        if freed > 0 {
            missing = missing.saturating_sub(freed);
            chosen.push(candidate.id.clone());
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
