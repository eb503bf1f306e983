//! The end of the leader, of the tree and of the task.

use std::time::Duration;

use super::{Children, Effect, Life};
use crate::task::{
    EndReason, EndState, Ended, EventKind, LeaderEnd, Moment, OrphanPolicy, Outcome, Placement,
    Proof, ProofResult, StopCause, Survivor, Task, Timestamp, WorkerStatus,
};

/// The end of a tree, as its shim has recorded it, or of hosted work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::supervisor) struct TreeEnded {
    pub(in crate::supervisor) leader: Option<LeaderEnd>,
    pub(in crate::supervisor) at: Timestamp,
    pub(in crate::supervisor) proof: ProofResult,
    pub(in crate::supervisor) output_bytes: u64,
    pub(in crate::supervisor) capture_error: Option<String>,
    /// True if orphans were left alone.
    pub(in crate::supervisor) abandoned: bool,
    pub(in crate::supervisor) cpu: Duration,
    pub(in crate::supervisor) max_memory: u64,
}

impl TreeEnded {
    /// An end that no shim has recorded: of the use of the task is known what its earlier attempts have used.
    pub(super) fn unobserved(
        task: &Task,
        leader: Option<LeaderEnd>,
        proof: ProofResult,
        output_bytes: u64,
        at: Timestamp,
    ) -> Self {
        let attempts = task.attempts.as_deref();
        Self {
            leader,
            at,
            proof,
            output_bytes,
            capture_error: None,
            abandoned: false,
            cpu: attempts.map_or(Duration::ZERO, |attempts| attempts.cpu),
            max_memory: attempts.map_or(0, |attempts| attempts.max_memory),
        }
    }

    pub(super) fn proof(&self) -> Proof {
        Proof {
            at: self.at,
            result: self.proof.clone(),
        }
    }
}

impl Life {
    pub(super) fn leader_exited(
        &mut self,
        end: LeaderEnd,
        output_bytes: u64,
        orphans: Vec<Survivor>,
        now: Moment,
    ) -> Vec<Effect> {
        if self.task.leader_end.is_some() {
            return Vec::new();
        }
        if self.is_restarted_after(&end, now) {
            let is_repeated = std::mem::replace(&mut self.are_orphans_killed, true);
            return match is_repeated {
                true => Vec::new(),
                false => vec![Effect::Kill],
            };
        }
        let was_foreground = self.task.placement() == Placement::Foreground;
        self.task.leader_end = Some(end);
        self.task.orphans_tracked = self.task.spec.orphan_policy == OrphanPolicy::Track;
        self.task.output_bytes = output_bytes;
        self.task.abandoned = orphans;
        let mut effects = vec![Effect::Record(EventKind::LeaderExited)];
        match self.task.spec.orphan_policy {
            OrphanPolicy::Track if was_foreground => effects.push(Effect::Spill),
            OrphanPolicy::Track => {}
            OrphanPolicy::Kill => effects.push(Effect::Kill),
            // A stop reaches the whole tree, orphans included.
            OrphanPolicy::Abandon if self.task.stop.is_none() => effects.push(Effect::Abandon),
            OrphanPolicy::Abandon => {}
        }
        effects
    }

    pub(super) fn tree_ended(&mut self, end: TreeEnded, now: Timestamp) -> Vec<Effect> {
        self.tree_ended.get_or_insert(end);
        self.end_unless_children_remain(now)
    }

    pub(super) fn children_finished(&mut self, now: Timestamp) -> Vec<Effect> {
        self.children = Children::Finished;
        self.end_unless_children_remain(now)
    }

    fn end_unless_children_remain(&mut self, now: Timestamp) -> Vec<Effect> {
        // A task that waited for its children ended after them; any other ended with its tree.
        let ended_at = match self.children {
            Children::Awaited => return Vec::new(),
            Children::Finished => Some(now),
            Children::NotAwaited => None,
        };
        match self.tree_ended.take() {
            Some(tree) => {
                let at = ended_at.unwrap_or(tree.at);
                self.end(tree, at)
            }
            None => Vec::new(),
        }
    }

    fn end(&mut self, tree: TreeEnded, at: Timestamp) -> Vec<Effect> {
        let proof = tree.proof();
        let task = &mut self.task;
        if task.leader_end.is_none() {
            let is_between_attempts = task.next_attempt().is_some();
            let attempts = task.attempts.as_ref();
            task.leader_end = match attempts.filter(|_| is_between_attempts && task.stop.is_some())
            {
                Some(attempts) => Some(attempts.failed.clone()),
                None => tree.leader,
            };
        }
        if let Some(stop) = &mut task.stop {
            stop.proof = Some(proof);
        }
        task.output_bytes = tree.output_bytes.max(task.output_bytes);
        task.capture_error = tree.capture_error;
        task.needs_input = None;
        if !tree.abandoned || task.stop.is_some() {
            task.abandoned = Vec::new();
        }
        let (state, reason) = verdict(task);
        task.ended = Some(Ended {
            state,
            reason,
            at,
            cpu: tree.cpu,
            max_memory: tree.max_memory,
        });
        vec![Effect::Record(EventKind::Ended)]
    }
}

/// The terminal state and its reason. The cause of a stop decides before the leader's outcome.
fn verdict(task: &Task) -> (EndState, EndReason) {
    if let Some(stop) = &task.stop {
        return match stop.cause {
            StopCause::Cancel => (EndState::Cancelled, EndReason::Cancelled),
            StopCause::Timeout => (EndState::TimedOut, EndReason::Timeout),
            StopCause::IdleTimeout => (EndState::TimedOut, EndReason::IdleTimeout),
            StopCause::NotReady => (EndState::TimedOut, EndReason::NotReady),
            StopCause::Shutdown => (EndState::Cancelled, EndReason::ServerShutdown),
            StopCause::ClientDisconnected => (EndState::Cancelled, EndReason::ClientDisconnected),
            StopCause::Replaced => (EndState::Cancelled, EndReason::Replaced),
            StopCause::OutputLimit => (EndState::Failed, EndReason::OutputLimit),
        };
    }
    let is_captured = task.capture_error.is_none();
    match task.leader_end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::Exited(0)) if is_captured => (EndState::Completed, EndReason::Exited),
        Some(Outcome::Exited(_)) => (EndState::Failed, EndReason::Exited),
        Some(Outcome::Signalled { .. }) => (EndState::Failed, EndReason::Signalled),
        Some(Outcome::SpawnFailed(_)) => (EndState::Failed, EndReason::SpawnFailed),
        Some(Outcome::Worker(WorkerStatus::Ok)) => (EndState::Completed, EndReason::Exited),
        Some(Outcome::Worker(WorkerStatus::Failed)) => (EndState::Failed, EndReason::WorkerFailed),
        Some(Outcome::Worker(WorkerStatus::Cancelled)) => {
            (EndState::Cancelled, EndReason::Cancelled)
        }
        Some(Outcome::Unknown(_)) | None => (
            EndState::Lost,
            match task.is_hosted() {
                true => EndReason::WorkerLost,
                false => EndReason::SupervisionLost,
            },
        ),
    }
}
