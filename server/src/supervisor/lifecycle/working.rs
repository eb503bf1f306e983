//! The worker of a task: its lease, its progress and its result.
//!
//! A hosted task lives by its worker: the result ends it, and so does a lease that runs out. A task with
//! processes lives by its tree, and its worker may come and go.

use std::{sync::Arc, time::Duration};

use super::{Effect, Life, TreeEnded};
use crate::task::{
    EventKind, LeaderEnd, Moment, Monotonic, Outcome, Progress, ProofResult, Stop, StopPhase,
    WorkerResult,
};

/// The least time between two PROGRESS events of one task.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The time for which a worker counts as a listener after it has asked whether to stop.
const LISTENS_FOR: Duration = Duration::from_secs(60);
/// A lease that is looked at this much too late is not over: the server itself was stopped, and has not
/// read what the worker sent meanwhile.
const LATE: Duration = Duration::from_secs(1);

/// The worker, as the actor has last looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::supervisor) struct WorkerSeen {
    pub(in crate::supervisor) connection: Connection,
    /// The latest message of it, and the latest one that is activity.
    pub(in crate::supervisor) heard: Option<Monotonic>,
    pub(in crate::supervisor) active: Option<Monotonic>,
    /// The latest question whether to stop.
    pub(in crate::supervisor) asked: Option<Monotonic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::supervisor) enum Connection {
    #[default]
    None,
    Connected,
}

/// Knowledge of earlier servers about the worker of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) enum EarlierWork {
    /// The task never had a worker.
    None,
    /// It had one, which has reported this progress.
    Had { progress: Option<Arc<Progress>> },
}

impl Life {
    /// Notes how the worker was last seen.
    pub(in crate::supervisor) fn see_worker(&mut self, seen: WorkerSeen) {
        self.worker = seen;
    }

    /// A restart of the server counts as activity of a worker: its heartbeats were not recorded.
    pub(super) fn take_over_work(&mut self, earlier: EarlierWork, now: Monotonic) {
        let had_worker = match earlier {
            EarlierWork::None => self.task.is_hosted(),
            EarlierWork::Had { progress } => {
                if progress.is_some() && progress != self.task.progress {
                    self.task.progress = progress;
                    self.progress_due = Some(now);
                }
                true
            }
        };
        if had_worker {
            self.last_activity = Some(now);
        }
    }

    pub(super) fn workers_accepted(&mut self, now: Moment) -> Vec<Effect> {
        self.lease_from = now.mono;
        if self.last_activity.is_some() {
            self.last_activity = Some(now.mono);
        }
        Vec::new()
    }

    pub(super) fn worker_listens(&self, now: Moment) -> bool {
        let has_asked = |asked: Monotonic| now.mono < asked.saturating_add(LISTENS_FOR);
        self.worker.connection == Connection::Connected || self.worker.asked.is_some_and(has_asked)
    }

    pub(super) fn lease_deadline(&self) -> Option<Monotonic> {
        let lease = self.task.lease()?;
        let heard = Some(self.lease_from).max(self.worker.heard)?;
        Some(heard.saturating_add(lease))
    }

    pub(super) fn lease_due(&mut self, now: Moment) -> Vec<Effect> {
        let (Some(lease), Some(due)) = (self.task.lease(), self.lease_deadline()) else {
            return Vec::new();
        };
        if now.mono < due || self.is_tree_gone() {
            return Vec::new();
        }
        if now.mono > due.saturating_add(LATE) {
            self.lease_from = now.mono;
            return Vec::new();
        }
        let known = format!("its worker was silent for longer than its lease of {lease:?}");
        self.worker_lost(known, now)
    }

    /// Ends a hosted task whose worker has not reacted to a stop.
    pub(super) fn end_without_worker(&mut self, now: Moment) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            stop.killed = true;
        }
        let known = "its worker delivered no result in time, and may be working still".to_owned();
        self.worker_lost(known, now)
    }

    pub(super) fn worker_lost(&mut self, known: String, now: Moment) -> Vec<Effect> {
        self.end_hosted(Outcome::Unknown(known.clone()), known, now)
    }

    fn end_hosted(&mut self, outcome: Outcome, known: String, now: Moment) -> Vec<Effect> {
        let end = LeaderEnd { outcome, at: now };
        let proof = ProofResult::Unproven(known);
        let end = TreeEnded::unobserved(&self.task, Some(end), proof, 0, now.wall);
        self.tree_ended(end, now.wall)
    }

    pub(super) fn progress_reported(
        &mut self,
        progress: Arc<Progress>,
        now: Moment,
    ) -> Vec<Effect> {
        self.task.progress = Some(progress);
        let mut effects = self.activity(now);
        self.last_activity = self.last_activity.max(Some(now.mono));
        let next = self
            .progress_announced
            .map(|at| at.saturating_add(PROGRESS_INTERVAL));
        match next {
            Some(next) if now.mono < next => self.progress_due = Some(next),
            Some(_) | None => {
                self.progress_due = Some(now.mono);
                effects.extend(self.announce_progress(now));
            }
        }
        effects
    }

    /// Announces progress that has not been announced.
    pub(super) fn announce_progress(&mut self, now: Moment) -> Vec<Effect> {
        match self.progress_due.take() {
            Some(_) if !self.is_tree_gone() => {
                self.progress_announced = Some(now.mono);
                vec![Effect::Record(EventKind::Progress)]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// A result ends a hosted task, and the soft phase of the stop of any other.
    pub(super) fn worker_result(&mut self, result: WorkerResult, now: Moment) -> Vec<Effect> {
        if self.task.result.is_some() || self.is_tree_gone() {
            return Vec::new();
        }
        let status = result.status;
        self.task.result = Some(Arc::new(WorkerResult { at: now, ..result }));
        if self.task.is_hosted() {
            let known = "its worker delivered a result".to_owned();
            return self.end_hosted(Outcome::Worker(status), known, now);
        }
        let phase = self.task.stop.as_ref().map(Stop::phase);
        match phase {
            Some(StopPhase::Soft { .. }) => self.soft_grace_over(now),
            Some(StopPhase::Signal { .. } | StopPhase::Kill) | None => {
                self.progress_due = Some(now.mono);
                self.announce_progress(now)
            }
        }
    }
}
