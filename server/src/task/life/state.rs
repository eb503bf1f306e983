//! The facts of a task's life, and the states that are read off them.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::task::{Actor, Moment, Monotonic, Timestamp};

/// The point in a task's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Waiting in a queue or for its exclusive key.
    Queued,
    /// The intent is durable; the leader does not run yet.
    Starting,
    /// A process of the tree is alive, or a worker may work.
    Running,
    /// A stop was requested.
    Stopping,
    /// Finished.
    Ended(EndState),
}

/// The terminal states.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndState {
    /// Exit 0, and no stop was requested.
    Completed,
    /// Any other end without a stop.
    Failed,
    /// Ended after a cancel.
    Cancelled,
    /// Ended after a timeout.
    TimedOut,
    /// The end cannot be known.
    Lost,
}

/// The reason for a task's end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The leader exited by itself.
    Exited,
    /// A signal that Heeler did not send.
    Signalled,
    /// The leader never ran.
    SpawnFailed,
    Cancelled,
    /// The timeout, or the foreground timeout.
    Timeout,
    /// The idle timeout, or the silence policy.
    IdleTimeout,
    /// Not ready in time.
    NotReady,
    /// The last attached client disconnected.
    ClientDisconnected,
    /// Another task replaced it as the holder of its exclusive key.
    Replaced,
    ServerShutdown,
    /// It wrote more output than its policy allows.
    OutputLimit,
    /// The shim was killed, or the machine restarted.
    SupervisionLost,
    /// The worker of a hosted task was silent for too long, or the machine restarted.
    WorkerLost,
    /// The worker of a hosted task delivered a failure.
    WorkerFailed,
}

/// The relation of a task to its clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// The task depends on no client.
    Background,
    /// A client attaches to the task and waits for it.
    Foreground,
}

/// The reason why a stream of Attach ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachEnd {
    /// The task continues in the background.
    Detached,
    /// The leader exited and its orphans are tracked.
    LeaderExited,
    Finished,
}

/// A task's wait in a queue or for its exclusive key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queued {
    /// The time at which the wait was over.
    pub admitted: Option<Timestamp>,
}

/// The start of a task's work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub at: Moment,
    #[serde(flatten)]
    pub by: StartedBy,
}

/// The party that does a task's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StartedBy {
    /// A process tree with this leader.
    Leader(Leader),
    /// A worker inside a client. The task started in this boot of the machine.
    Worker { boot: Uuid },
}

/// The first process of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    pub pid: u32,
    /// Start in clock ticks since boot: with the pid, the process's identity.
    pub start_ticks: u64,
    pub containment: Containment,
}

impl Started {
    /// The first process; none for a hosted task.
    pub fn leader(&self) -> Option<Leader> {
        match self.by {
            StartedBy::Leader(leader) => Some(leader),
            StartedBy::Worker { .. } => None,
        }
    }
}

/// The mechanism that keeps a tree together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Containment {
    /// A cgroup of its own, with the shim as subreaper outside it.
    Cgroup,
    /// The shim as subreaper.
    Subreaper,
}

/// A move from the foreground to the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detached {
    pub cause: DetachCause,
    pub actor: Actor,
    /// The requester's reason.
    pub reason: Option<String>,
    pub at: Timestamp,
    /// The same by the monotonic clock, if it had started. A task that was detached before, perhaps in
    /// an earlier boot, runs in the background from its start on.
    pub ran_at: Option<Monotonic>,
    /// Replaces the timeout of the specification.
    pub timeout: Option<Duration>,
}

/// The cause of a detachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetachCause {
    /// A Detach.
    Requested,
    ForegroundTimeout,
    /// The last attached client disconnected.
    ClientDisconnected,
}

/// The end of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub state: EndState,
    pub reason: EndReason,
    pub at: Timestamp,
    /// CPU time of the whole tree, as far as it is known.
    pub cpu: Duration,
    /// The largest resident memory of any one process, as far as it is known.
    pub max_memory: u64,
}
