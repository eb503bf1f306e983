//! The vocabulary: a task, its specification, its life and its end. No I/O.
//!
//! A [`Task`] is a set of facts that only grows: it was created, it started, its leader exited, a stop
//! was requested, it ended. Its [`State`] is not stored but read off those facts, so that no two of
//! them can disagree.

pub(crate) mod ampersand;
mod event;
mod filter;
mod id;
mod life;
mod output;
mod queue;
mod rights;
mod spec;
mod time;
mod trace;
mod work;

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

pub use event::EventKind;
pub(crate) use event::{Event, EventRole, Revision};
pub(crate) use filter::{Filter, PortFilter};
pub use id::{IdKey, Seq, TaskId, TaskUid};
pub(crate) use id::{IdPrefix, ParseIdPrefixError};
pub use life::outcome::{LeaderEnd, Outcome};
pub(crate) use life::outcome::{SpawnFailure, SpawnStage};
pub(crate) use life::proof::{Proof, ProofMethod, ProofResult, Survivor};
pub(crate) use life::session::{Activity, Fact, FactKind, SessionIdle};
pub(crate) use life::state::{AttachEnd, DetachCause, Detached, Placement, Queued, State};
pub use life::state::{Containment, EndReason, EndState, Ended, Leader, Started, StartedBy};
pub use life::stop::Signal;
pub(crate) use life::stop::{
    Actor, SentSignal, SignalTarget, SoftPhase, Stop, StopCause, StopMode, StopPhase,
};
pub(crate) use output::{Chunk, OutputLimit, OutputLimitCause, Stream, Tail};
pub use output::{Gap, GapCause, Item};
pub(crate) use queue::QueueSettings;
pub(crate) use rights::{Authority, Rights, Scope};
pub(crate) use spec::SpawnRequest;
pub(crate) use spec::pattern::{
    DEFAULT_COOLDOWN, DEFAULT_EVENTS, FoundLines, LinePlace, MOST_PATTERNS, Match, MatchesByName,
    Pattern, PatternMatches,
};
pub(crate) use spec::policy::DEFAULT_SOFT_GRACE;
pub(crate) use spec::policy::{
    DEFAULT_FOREGROUND_TIMEOUT, DEFAULT_REATTACH_WINDOW, Environment, EnvironmentDefaults,
    Exclusive, ExclusiveMode, Foreground, Input, OnDisconnect, OnForegroundTimeout, OnStale,
    OrphanPolicy, Silence, ValueDigest,
};
pub use spec::policy::{DEFAULT_GRACE, OnOutputLimit, OutputPolicy, StopPolicy};
pub(crate) use spec::readiness::{DEFAULT_PROBE_INTERVAL, OnReadyTimeout, Probe, Readiness, Ready};
pub(crate) use spec::restart::{
    AttemptPhase, Attempts, DEFAULT_MAX_RESTART_DELAY, DEFAULT_MAX_RESTARTS, DEFAULT_RESET_AFTER,
    DEFAULT_RESTART_DELAY, Restart,
};
pub(crate) use spec::terminal::{DEFAULT_TERM, Terminal, TerminalSize};
pub use spec::{Command, Kind, Spec};
pub use time::{Moment, Monotonic, Timestamp};
pub(crate) use trace::{CallSpan, SpanContext, TaskSpan};
pub(crate) use work::{
    Block, BlockKind, LATEST_BLOCKS, MAILBOX_BYTES, MAILBOX_MESSAGES, MESSAGE_RECEIPTS,
    MessageDraft, NewBlock, Progress, ProgressUpdate, Report, ReportedBy, TaskMessage,
    WorkerResult, WorkerStatus,
};

/// One unit of supervised work, as it is after its latest event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its number in the order of creation.
    pub seq: Seq,
    pub id: TaskId,
    /// Globally unique id.
    pub uid: TaskUid,
    pub spec: Arc<Spec>,
    /// Its parent, the parent of that, and so on, from the first one down to its parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<TaskId>,
    /// The time at which its intent was recorded.
    pub created: Timestamp,
    /// Its span, if the server that created it exports traces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Box<TaskSpan>>,
    /// Present if it had to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// The first start, with the leader of the latest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Started>,
    /// Present once an attempt has failed and another one follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts: Option<Box<Attempts>>,
    /// The end of the leader, or its failure to start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_end: Option<LeaderEnd>,
    /// True once orphans are tracked after the leader's exit: the task is out of the foreground.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub orphans_tracked: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detached: Option<Detached>,
    /// The time at which it became stale, while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Timestamp>,
    /// The time at which it became ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Timestamp>,
    /// The time at which it should have been ready, and was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_ready: Option<Timestamp>,
    /// The time at which it was seen to wait for input, while it is silent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_input: Option<Timestamp>,
    /// The orphans that lived on when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<Survivor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Stop>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// The progress that its worker has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<Arc<Progress>>,
    /// The result that its worker has delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Arc<WorkerResult>>,
    /// Bytes of output written.
    pub output_bytes: u64,
    /// Bytes of disk that its file took when it ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stored_bytes: u64,
    /// Present once output was dropped by rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_limit: Option<OutputLimit>,
    /// The reason why output is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture_error: Option<String>,
    /// The matches of its patterns.
    #[serde(default, skip_serializing_if = "MatchesByName::is_empty")]
    pub matches: MatchesByName,
    /// The lines that its latest Matched event tells of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_match: Option<Match>,
    /// The revision of its latest event; set by the journal.
    pub revision: Revision,
}

impl Task {
    /// A task that was requested and to which nothing has happened.
    pub fn new(seq: Seq, id: TaskId, spec: Spec, created: Timestamp) -> Self {
        Self {
            seq,
            id,
            uid: TaskUid::new(),
            spec: Arc::new(spec),
            ancestors: Vec::new(),
            created,
            span: None,
            queued: None,
            started: None,
            attempts: None,
            leader_end: None,
            orphans_tracked: false,
            detached: None,
            stale: None,
            ready: None,
            not_ready: None,
            needs_input: None,
            abandoned: Vec::new(),
            stop: None,
            ended: None,
            progress: None,
            result: None,
            output_bytes: 0,
            stored_bytes: 0,
            output_limit: None,
            capture_error: None,
            matches: MatchesByName::new(),
            last_match: None,
            revision: Revision(0),
        }
    }

    pub(crate) fn descends_from(&self, other: &TaskId) -> bool {
        self.ancestors.contains(other)
    }

    /// The point in its life.
    pub fn state(&self) -> State {
        match (&self.ended, &self.stop, &self.started) {
            (Some(ended), _, _) => State::Ended(ended.state),
            (None, Some(_), _) => State::Stopping,
            (None, None, Some(_)) if self.next_attempt().is_some() => State::Starting,
            (None, None, Some(_)) => State::Running,
            (None, None, None) if self.is_waiting() => State::Queued,
            (None, None, None) => State::Starting,
        }
    }

    /// The lease of its worker, if it is hosted: a worker inside a client does it, and no process.
    pub fn lease(&self) -> Option<Duration> {
        match self.spec.command {
            Command::Hosted { lease } => Some(lease),
            Command::Argv(_) | Command::Shell { .. } => None,
        }
    }

    pub fn is_hosted(&self) -> bool {
        self.lease().is_some()
    }

    /// True until it is finished.
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }

    /// True for a live task whose kill is overdue: its stop record names the survivors.
    pub fn has_survivors(&self) -> bool {
        let stop = self.stop.as_ref();
        self.is_live() && stop.is_some_and(|stop| !stop.survivors().is_empty())
    }

    /// True once its tree is proven empty, or the survivors of its kill are named.
    pub fn has_stopped(&self) -> bool {
        let stop = self.stop.as_ref();
        !self.is_live() || stop.is_some_and(|stop| stop.proof.is_some())
    }

    /// True while it waits in a queue or for its exclusive key, and for good if it was stopped there.
    pub fn is_waiting(&self) -> bool {
        self.queued
            .as_ref()
            .is_some_and(|queued| queued.admitted.is_none())
    }

    /// True if its Spawn is answered while it waits. One that waits only for the end of another task,
    /// which it replaces or comes after, is answered when it runs.
    pub fn is_answered_waiting(&self) -> bool {
        self.queued.is_some() && self.spec.may_wait()
    }

    /// Its relation to clients. A task that finished in the foreground stays there.
    pub fn placement(&self) -> Placement {
        match (&self.spec.foreground, &self.detached) {
            (Some(_), None) if !self.orphans_tracked => Placement::Foreground,
            (Some(_), Some(_) | None) | (None, _) => Placement::Background,
        }
    }

    /// The reason to end an Attach that began in this placement; `None` while it continues.
    pub fn attach_end(&self, from: Placement) -> Option<AttachEnd> {
        if !self.is_live() {
            Some(AttachEnd::Finished)
        } else if self.orphans_tracked {
            Some(AttachEnd::LeaderExited)
        } else if from == Placement::Foreground && self.placement() == Placement::Background {
            Some(AttachEnd::Detached)
        } else {
            None
        }
    }

    /// True in the background, or when finished.
    pub fn is_out_of_foreground(&self) -> bool {
        !self.is_live() || self.placement() == Placement::Background
    }

    /// The matches of one of its patterns.
    pub fn matches_of(&self, pattern: &Pattern) -> PatternMatches {
        let matches = self.matches.get(&pattern.name).cloned();
        matches.unwrap_or_else(|| pattern.unsearched())
    }

    /// Maximum time in the background.
    pub fn timeout(&self) -> Option<Duration> {
        let detached = self.detached.as_ref();
        detached
            .and_then(|detached| detached.timeout)
            .or(self.spec.timeout)
    }

    /// The time since which it has run in the background.
    pub fn background_since(&self) -> Option<Monotonic> {
        let started = self.started.as_ref()?.at.mono;
        if self.spec.foreground.is_none() {
            return Some(started);
        }
        match (&self.detached, &self.leader_end) {
            (Some(detached), _) => Some(detached.ran_at.unwrap_or(started)),
            (None, Some(end)) => Some(end.at.mono),
            (None, None) => None,
        }
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
