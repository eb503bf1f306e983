//! The record of a stop: its cause, its requester, the signals sent, and the proof.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::task::{Moment, Monotonic, Proof, ProofResult, StopPolicy, Survivor, Timestamp};

/// A signal's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

/// The steps taken to stop a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    pub cause: StopCause,
    pub actor: Actor,
    /// The requester's reason.
    pub reason: Option<String>,
    /// The time at which the request became durable.
    pub requested: Moment,
    pub mode: StopMode,
    /// The tasks that it spawned are stopped before it.
    pub cascade: bool,
    /// The phase before the signal, if a worker listened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub soft: Option<SoftPhase>,
    /// The kill of the whole tree was ordered, or the worker of a hosted task is not waited for any more.
    #[serde(default)]
    pub killed: bool,
    /// The signals sent, in order.
    pub signals: Vec<SentSignal>,
    /// The latest check of the tree.
    pub proof: Option<Proof>,
}

impl Stop {
    /// The processes that have outlived the kill so far; none once the tree is proven empty.
    pub fn survivors(&self) -> &[Survivor] {
        match self.proof.as_ref().map(|proof| &proof.result) {
            Some(ProofResult::Survivors(survivors)) => survivors,
            Some(ProofResult::Proven(_) | ProofResult::Unproven(_)) | None => &[],
        }
    }

    /// The point that it has reached.
    pub fn phase(&self) -> StopPhase {
        let policy = match self.mode {
            StopMode::Graceful(policy) if !self.killed => policy,
            StopMode::Graceful(_) | StopMode::Force => return StopPhase::Kill,
        };
        let requested = self.requested.mono;
        let signalled = match self.soft {
            None => requested,
            Some(SoftPhase { over: Some(at), .. }) => at.mono,
            Some(SoftPhase { grace, over: None }) => {
                let until = requested.saturating_add(grace);
                return StopPhase::Soft { until };
            }
        };
        let until = signalled.saturating_add(policy.grace);
        StopPhase::Signal { policy, until }
    }

    /// Brings the next phase forward to where a later request would have it; returns whether it comes earlier.
    pub fn hasten(&mut self, later: StopPolicy, now: Monotonic) -> bool {
        let before = (self.mode, self.soft);
        let phase = self.phase();
        let StopMode::Graceful(policy) = &mut self.mode else {
            return false;
        };
        match (phase, &mut self.soft) {
            (StopPhase::Soft { .. }, Some(soft)) => {
                let from_request = now
                    .since(self.requested.mono)
                    .saturating_add(later.soft_grace);
                soft.grace = soft.grace.min(from_request);
                policy.grace = policy.grace.min(later.grace);
            }
            (StopPhase::Signal { until, .. }, _) => {
                let earlier = now.saturating_add(later.grace).min(until);
                policy.grace = policy.grace.saturating_sub(until.since(earlier));
            }
            (StopPhase::Soft { .. } | StopPhase::Kill, _) => {}
        }
        before != (self.mode, self.soft)
    }
}

/// The phase of a stop in which a worker finishes its present tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftPhase {
    /// Its longest duration, from the request on.
    pub grace: Duration,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<Moment>,
}

/// The point that a stop has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopPhase {
    /// A worker finishes its present tool call.
    Soft { until: Monotonic },
    /// The stop signal was sent; for a hosted task, the worker was told to stop now.
    Signal {
        policy: StopPolicy,
        until: Monotonic,
    },
    /// The kill was ordered; for a hosted task, the worker is not waited for any more.
    Kill,
}

/// The way in which a tree is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// A soft phase if a worker listens, the signal, the grace, then the kill.
    Graceful(StopPolicy),
    /// The kill at once.
    Force,
}

/// The cause of a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A Cancel.
    Cancel,
    /// The timeout, or the foreground timeout.
    Timeout,
    /// A Shutdown that stops all tasks.
    Shutdown,
    /// The idle timeout, or the silence policy.
    IdleTimeout,
    /// Not ready in time.
    NotReady,
    /// The last attached client disconnected.
    ClientDisconnected,
    /// Another task replaced it as the holder of its exclusive key.
    Replaced,
    /// It wrote more output than its policy allows. The shim has begun the kill by itself.
    OutputLimit,
}

/// The requester of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Actor {
    /// Name given by the requester.
    pub name: Option<String>,
    /// User id as reported by the kernel.
    pub uid: Option<u32>,
    /// Process id as reported by the kernel.
    pub pid: Option<i32>,
}

impl Actor {
    /// The server itself, if no client asked.
    pub fn heeler() -> Self {
        Self {
            name: Some("heeler".to_owned()),
            uid: None,
            pid: None,
        }
    }
}

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSignal {
    pub signal: Signal,
    pub at: Timestamp,
    pub target: SignalTarget,
}

/// The processes that a signal was sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalTarget {
    /// This many processes.
    Processes(u32),
    /// The whole tree, which a kill reaches without counting it.
    Tree,
}
