//! The vocabulary: what a task is, what is asked of it and what becomes of it. No I/O.
//!
//! A [`Task`] is a set of facts that only grows: it was created, it started, its leader exited, a
//! stop was asked for, it ended. Its [`State`] is not stored but read off those facts, so that no
//! two of them can disagree.

pub mod ampersand;
mod filter;
mod id;
mod output;
mod queue;
mod rules;
mod session;
mod spec;
mod stop;
mod time;

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

pub use filter::Filter;
pub use id::{IdKey, ParseTaskIdError, Seq, TaskId, TaskUid};
pub use output::{Chunk, Stream, Tail};
pub use queue::QueueSettings;
pub use rules::{
    DEFAULT_FOREGROUND_TIMEOUT, DEFAULT_REATTACH_WINDOW, Exclusive, ExclusiveMode, Foreground,
    OnDisconnect, OnForegroundTimeout, OrphanPolicy, Rules, Stale, StaleAction,
};
pub use session::{Activity, Fact, FactKind, SessionIdle};
pub use spec::{Command, EnvDefaults, SpawnRequest, Spec};
pub use stop::{
    Actor, Proof, ProofMethod, SentSignal, Signal, Stop, StopCause, StopMode, StopPolicy, Survivor,
};
pub use time::Timestamp;

/// How long a tree may take to obey the stop signal, where nobody says otherwise.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);

/// A fact's number in the journal: gap-free, never reused. 0 stands before the first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// What kind of work a task is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A process tree.
    Shell,
    /// A process tree that is a subagent.
    Agent,
}

/// One unit of supervised work, as it is after its latest fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Its place in the order of creation.
    pub seq: Seq,
    /// What people call it by.
    pub id: TaskId,
    /// What nobody else in the world has.
    pub uid: TaskUid,
    /// What was asked for.
    pub spec: Arc<Spec>,
    /// When its intent was recorded.
    pub created: Timestamp,
    /// That it had to wait for its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// That its leader ran.
    pub started: Option<Started>,
    /// How its leader ended, or failed to begin.
    pub leader_end: Option<LeaderEnd>,
    /// That it came from the foreground into the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detached: Option<Detached>,
    /// Since when it has been stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale: Option<Timestamp>,
    /// Who was left to themselves when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub abandoned: Vec<Survivor>,
    /// What has been done to stop it.
    pub stop: Option<Stop>,
    /// That it is over.
    pub ended: Option<Ended>,
    /// How much output there was.
    pub output_bytes: u64,
    /// Why its output is not complete.
    pub capture_error: Option<String>,
    /// The revision of its latest fact; set by the journal.
    pub revision: Revision,
}

/// That a task had to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// When its turn came.
    pub admitted: Option<Timestamp>,
}

/// How a task came from the foreground into the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    /// What asked.
    pub cause: DetachCause,
    /// Who asked.
    pub actor: Actor,
    /// Why, in the asker's words.
    pub reason: Option<String>,
    /// When.
    pub at: Timestamp,
    /// How long it may run from then on, where that is not what its Spawn said.
    pub timeout: Option<Duration>,
}

/// What can detach a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachCause {
    /// A Detach.
    Requested,
    /// Its time in the foreground was over.
    ForegroundTimeout,
    /// Nobody held it any more.
    ClientDisconnected,
}

/// That a leader ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Its process id.
    pub pid: u32,
    /// Its start in clock ticks since boot: with the pid, the process's identity.
    pub start_ticks: u64,
    /// When.
    pub at: Timestamp,
    /// What holds its tree together.
    pub containment: Containment,
}

/// What holds a tree together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A cgroup of its own, with the shim as subreaper outside it.
    Cgroup,
    /// The shim as subreaper.
    Subreaper,
}

/// How a leader ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderEnd {
    /// The one way it did.
    pub outcome: Outcome,
    /// When.
    pub at: Timestamp,
}

/// The ways for a leader to end, never folded into one number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited by itself.
    Exited(i32),
    /// A signal ended it.
    Signalled {
        /// Which.
        signal: Signal,
        /// Whether core was dumped.
        core_dumped: bool,
    },
    /// It never ran.
    SpawnFailed(SpawnFailure),
    /// It is gone, and nobody saw how.
    Unknown(String),
}

/// Why a leader never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnFailure {
    /// What was being done.
    pub operation: String,
    /// The system's words.
    pub message: String,
    /// The system's number; 0 where there is none.
    pub errno: i32,
}

/// That a task is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Which terminal state.
    pub state: EndState,
    /// Why.
    pub reason: EndReason,
    /// When.
    pub at: Timestamp,
    /// CPU time of the whole tree, where it is known.
    pub cpu: Duration,
    /// The largest resident memory of any of its processes, where it is known.
    pub max_memory: u64,
}

/// The terminal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// Exit 0, unasked.
    Completed,
    /// Any other end of its own.
    Failed,
    /// It ended after a cancel.
    Cancelled,
    /// It ended after a deadline.
    TimedOut,
    /// How it ended cannot be known.
    Lost,
}

/// Why a task is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The leader exited by itself.
    Exited,
    /// A signal that Heeler did not send.
    Signalled,
    /// The leader never ran.
    SpawnFailed,
    /// A Cancel.
    Cancelled,
    /// Its timeout.
    Deadline,
    /// It was silent for too long.
    IdleDeadline,
    /// Nobody held it any more.
    ClientDisconnected,
    /// Another task took its exclusive key.
    Replaced,
    /// The server was told to stop its tasks.
    ServerShutdown,
    /// Its supervision broke.
    SupervisionLost,
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// It waits for its turn.
    Queued,
    /// Its intent is durable; its leader does not run yet.
    Starting,
    /// A process of its tree is alive.
    Running,
    /// It was asked to stop.
    Stopping,
    /// It is over.
    Ended(EndState),
}

/// Whether a task holds its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// No.
    Background,
    /// Yes, until it is released.
    Foreground,
}

/// Why a hold is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachEnd {
    /// The task goes on in the background.
    Detached,
    /// Its leader is gone, and the rest goes on.
    LeaderExited,
    /// It is over.
    Finished,
}

impl Task {
    /// One of which nothing is known but what was asked for.
    pub fn new(seq: Seq, id: TaskId, spec: Spec, created: Timestamp) -> Self {
        Self {
            seq,
            id,
            uid: TaskUid::new(),
            spec: Arc::new(spec),
            created,
            queued: None,
            started: None,
            leader_end: None,
            detached: None,
            stale: None,
            abandoned: Vec::new(),
            stop: None,
            ended: None,
            output_bytes: 0,
            capture_error: None,
            revision: Revision(0),
        }
    }

    /// Where it is in its life.
    pub fn state(&self) -> State {
        match (&self.ended, &self.stop, &self.started) {
            (Some(ended), _, _) => State::Ended(ended.state),
            (None, Some(_), _) => State::Stopping,
            (None, None, Some(_)) => State::Running,
            (None, None, None) if self.is_waiting() => State::Queued,
            (None, None, None) => State::Starting,
        }
    }

    /// Whether it is not over yet.
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }

    /// True for a live task whose kill is overdue: its stop record names the survivors.
    pub fn has_survivors(&self) -> bool {
        let proof = self.stop.as_ref().and_then(|stop| stop.proof.as_ref());
        proof.is_some_and(|proof| !proof.survivors.is_empty())
    }

    /// Whether its turn has not come; once it is being stopped, it never does.
    pub fn is_waiting(&self) -> bool {
        self.queued
            .as_ref()
            .is_some_and(|queued| queued.admitted.is_none())
    }

    /// Whether its Spawn is answered as soon as it is recorded: one that waits for its turn, unless it
    /// is to replace another.
    pub fn is_answered_waiting(&self) -> bool {
        let exclusive = self.spec.rules.exclusive.as_ref();
        let replaces = |exclusive: &Exclusive| match exclusive.mode {
            ExclusiveMode::Replace => true,
            ExclusiveMode::Reject | ExclusiveMode::Queue => false,
        };
        self.queued.is_some() && !exclusive.is_some_and(replaces)
    }

    /// Whether it holds its caller: one that is over in the foreground did so to the end.
    pub fn placement(&self) -> Placement {
        match (&self.spec.rules.foreground, &self.detached) {
            (Some(_), None) if !self.is_outlived() => Placement::Foreground,
            (Some(_), Some(_) | None) | (None, _) => Placement::Background,
        }
    }

    /// Whether it goes on without its leader; where the rest is killed or let go, it is as good as over.
    fn is_outlived(&self) -> bool {
        let tracks = self.spec.rules.orphan_policy == OrphanPolicy::Track;
        self.is_live() && self.leader_end.is_some() && tracks
    }

    /// Why whoever attached to it when it was there is held no more; `None` while that is not so.
    pub fn attach_end(&self, from: Placement) -> Option<AttachEnd> {
        if !self.is_live() {
            Some(AttachEnd::Finished)
        } else if self.is_outlived() {
            Some(AttachEnd::LeaderExited)
        } else if from == Placement::Foreground && self.placement() == Placement::Background {
            Some(AttachEnd::Detached)
        } else {
            None
        }
    }

    /// Whether nobody is held by it, or need be.
    pub fn is_out_of_foreground(&self) -> bool {
        !self.is_live() || self.placement() == Placement::Background
    }

    /// How long it may run in the background.
    pub fn timeout(&self) -> Option<Duration> {
        let detached = self.detached.as_ref();
        detached
            .and_then(|detached| detached.timeout)
            .or(self.spec.timeout)
    }

    /// Since when it has run in the background.
    pub fn background_since(&self) -> Option<Timestamp> {
        let started = self.started.as_ref()?;
        if self.spec.rules.foreground.is_none() {
            return Some(started.at);
        }
        match (&self.detached, &self.leader_end) {
            // One that was detached while it waited runs only from its start.
            (Some(detached), _) => Some(detached.at.max(started.at)),
            (None, Some(end)) => Some(end.at),
            (None, None) => None,
        }
    }
}

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Its intent is durable.
    Created,
    /// Its turn has come.
    Admitted,
    /// Its leader runs.
    Started,
    /// It was asked to stop, or a stop was made more urgent.
    Stopping,
    /// The leader is gone, others of the tree are not.
    LeaderExited,
    /// It came from the foreground into the background.
    Detached,
    /// It has been silent for too long.
    Stale,
    /// It is stale no more.
    Active,
    /// A kill did not empty the tree in time.
    KillOverdue,
    /// It is over.
    Ended,
    /// It is forgotten.
    Removed,
}

/// What an event does to its task's place in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// The task is new.
    Creation,
    /// The task has a new state.
    Change,
    /// The task is no longer in the journal.
    Removal,
}

impl EventKind {
    /// The role of the event.
    pub fn role(self) -> EventRole {
        match self {
            Self::Created => EventRole::Creation,
            Self::Removed => EventRole::Removal,
            Self::Admitted
            | Self::Started
            | Self::Stopping
            | Self::LeaderExited
            | Self::Detached
            | Self::Stale
            | Self::Active
            | Self::KillOverdue
            | Self::Ended => EventRole::Change,
        }
    }
}

/// One thing that happened, for ever at its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its number.
    pub revision: Revision,
    /// When it became durable.
    pub at: Timestamp,
    /// What happened.
    pub kind: EventKind,
    /// The task right after it.
    pub task: Arc<Task>,
    /// How many tasks of its session are live after it, if it has one and this has changed.
    pub activity: Option<Activity>,
}

impl Event {
    /// Reports whether Spawn is answered with this event, unless it was answered before.
    pub fn answers_spawn(&self) -> bool {
        let starts_or_ends = self.kind == EventKind::Started || self.kind == EventKind::Ended;
        let is_creation = self.kind.role() == EventRole::Creation;
        starts_or_ends || (is_creation && self.task.is_answered_waiting())
    }

    /// Reports whether the event is delivered with the tail of the task's output. An end without any
    /// output has an empty tail, see [`Event::ended_silent`].
    pub fn has_output_tail(&self) -> bool {
        self.kind == EventKind::Ended && self.task.output_bytes > 0
    }

    /// Reports whether this is the end of a task that wrote nothing.
    pub fn ended_silent(&self) -> bool {
        self.kind == EventKind::Ended && self.task.output_bytes == 0
    }
}
