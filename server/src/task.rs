//! The vocabulary: what a task is, what is asked of it and what becomes of it. No I/O.
//!
//! A [`Task`] is a set of facts that only grows: it was created, it started, its leader exited, a
//! stop was asked for, it ended. Its [`State`] is not stored but read off those facts, so that no
//! two of them can disagree.

mod filter;
mod id;
mod time;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

pub use filter::Filter;
pub use id::{IdKey, ParseTaskIdError, Seq, TaskId, TaskUid};
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

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
    /// A script for a shell.
    Shell {
        /// What follows `-c`.
        script: String,
        /// Which shell, if the client chose one.
        program: Option<PathBuf>,
    },
}

/// A signal's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signal(pub i32);

/// How a task is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPolicy {
    /// How long the tree may take to obey.
    pub grace: Duration,
    /// What it is asked with.
    pub signal: Signal,
}

/// Which defaults lie between the base environment and the request's own variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvDefaults {
    /// No pager, no editor, no colour, no prompts.
    NonInteractive,
    /// None.
    None,
}

/// A Spawn as it was asked for, secrets included: what `request_id` is compared by. It is kept in
/// the journal and told to nobody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnRequest {
    /// Makes the request safe to repeat.
    pub request_id: Option<String>,
    /// What kind of work.
    pub kind: Kind,
    /// A name for people.
    pub name: String,
    /// The conversation it belongs to; empty for none.
    pub session_id: String,
    /// The task that spawns it.
    pub parent: Option<TaskId>,
    /// The client's own data.
    pub labels: BTreeMap<String, String>,
    /// What to run.
    pub command: Command,
    /// Where, if the client chose.
    pub working_directory: Option<PathBuf>,
    /// Variables to set.
    pub env: BTreeMap<String, String>,
    /// Variables to take away.
    pub env_remove: Vec<String>,
    /// Which defaults to begin with.
    pub env_defaults: EnvDefaults,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How it is stopped.
    pub stop_policy: StopPolicy,
}

/// The part of a [`SpawnRequest`] that everybody may see, defaults filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// What kind of work.
    pub kind: Kind,
    /// A name for people.
    pub name: String,
    /// The conversation it belongs to; empty for none.
    pub session_id: String,
    /// The task that spawned it.
    pub parent: Option<TaskId>,
    /// The client's own data.
    pub labels: BTreeMap<String, String>,
    /// What is run.
    pub command: Command,
    /// Where: an absolute path.
    pub working_directory: PathBuf,
    /// The names of the variables that the request set.
    pub env_names: Vec<String>,
    /// How long it may run.
    pub timeout: Option<Duration>,
    /// How it is stopped.
    pub stop_policy: StopPolicy,
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
    /// That its leader ran.
    pub started: Option<Started>,
    /// How its leader ended, or failed to begin.
    pub leader_end: Option<LeaderEnd>,
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

/// What has been done to stop a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stop {
    /// What asked.
    pub cause: StopCause,
    /// Who asked.
    pub actor: Actor,
    /// Why, in the asker's words.
    pub reason: Option<String>,
    /// When.
    pub requested: Timestamp,
    /// How.
    pub mode: StopMode,
    /// Whether the tasks that it spawned are stopped before it.
    pub cascade: bool,
    /// Whether the kill of the whole tree was ordered.
    #[serde(default)]
    pub killed: bool,
    /// What was sent so far.
    pub signals: Vec<SentSignal>,
    /// The evidence that the tree is empty, or who is left.
    pub proof: Option<Proof>,
}

/// How a tree is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopMode {
    /// It is asked, then killed if it does not obey in time.
    Graceful(StopPolicy),
    /// It is killed.
    Force,
}

/// What can ask a task to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    /// A Cancel.
    Cancel,
    /// Its own timeout.
    Deadline,
    /// The server goes down, and was told to take its tasks with it.
    Shutdown,
}

/// Who asks for something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Actor {
    /// In the asker's words.
    pub name: Option<String>,
    /// The asker's user, as the kernel tells it.
    pub uid: Option<u32>,
    /// The asker's process, as the kernel tells it.
    pub pid: Option<i32>,
}

/// A signal that was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSignal {
    /// Which.
    pub signal: Signal,
    /// When.
    pub at: Timestamp,
    /// To how many processes; 0 for a kill of the whole tree.
    pub processes: u32,
}

/// The evidence that a tree is empty, or who is left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// What the evidence is.
    pub method: ProofMethod,
    /// When it was taken.
    pub at: Timestamp,
    /// Who is left; nobody, if it is a proof.
    pub survivors: Vec<Survivor>,
}

/// How the emptiness of a tree is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofMethod {
    /// The cgroup has no member and the shim no child.
    CgroupEmpty,
    /// The shim has no child, and no process has the task's mark.
    NoChildren,
    /// The shim was gone; cgroup and marks were swept until nothing was found.
    Sweep,
    /// Nothing was ever started.
    NeverStarted,
    /// The machine was started anew since: no process lives through that.
    Reboot,
}

/// A process that outlived a kill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    /// Its id.
    pub pid: i32,
    /// Its parent's id.
    pub parent_pid: i32,
    /// What it runs.
    pub command: String,
    /// The kernel's letter for its state.
    pub state: String,
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
    /// The server was told to stop its tasks.
    ServerShutdown,
    /// Its supervision broke.
    SupervisionLost,
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Its intent is durable; its leader does not run yet.
    Starting,
    /// A process of its tree is alive.
    Running,
    /// It was asked to stop.
    Stopping,
    /// It is over.
    Ended(EndState),
}

impl Task {
    /// Where it is in its life.
    pub fn state(&self) -> State {
        match (&self.ended, &self.stop, &self.started) {
            (Some(ended), _, _) => State::Ended(ended.state),
            (None, Some(_), _) => State::Stopping,
            (None, None, Some(_)) => State::Running,
            (None, None, None) => State::Starting,
        }
    }

    /// Whether it is not over yet.
    pub fn is_live(&self) -> bool {
        self.ended.is_none()
    }
}

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// Its intent is durable.
    Created,
    /// Its leader runs.
    Started,
    /// It was asked to stop, or a stop was made more urgent.
    Stopping,
    /// The leader is gone, others of the tree are not.
    LeaderExited,
    /// A kill did not empty the tree in time.
    KillOverdue,
    /// It is over.
    Ended,
    /// It is forgotten.
    Removed,
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
    /// The end of the output, with [`EventKind::Ended`].
    pub tail: Option<Tail>,
}

/// Which of a task's pipes bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stream {
    /// Descriptor 1.
    Stdout,
    /// Descriptor 2.
    Stderr,
}

/// Bytes of one stream that arrived together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chunk {
    /// The offset of the first byte.
    pub offset: u64,
    /// Where they came from.
    pub stream: Stream,
    /// When they were read.
    pub at: Timestamp,
    /// The bytes.
    pub data: Vec<u8>,
}

/// The end of a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tail {
    /// In the order of arrival.
    pub chunks: Vec<Chunk>,
    /// How much output there is in all.
    pub end: u64,
}
