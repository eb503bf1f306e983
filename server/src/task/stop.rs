//! How a task is stopped: by whom, with what, and the evidence that it is.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Timestamp;

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
    /// It was silent for too long.
    IdleDeadline,
    /// Nobody held it any more.
    ClientDisconnected,
    /// Another task took its exclusive key.
    Replaced,
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

impl Actor {
    /// The server itself, where no client asked.
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
    /// The number of processes that got it; `None` for a kill of the whole tree, which is repeated
    /// until the tree is empty.
    pub processes: Option<u32>,
}

impl SentSignal {
    pub fn is_tree_kill(&self) -> bool {
        self.processes.is_none()
    }
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
