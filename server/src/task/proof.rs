//! The proof that a tree is empty, or the processes that disprove it.

use serde::{Deserialize, Serialize};

use super::Timestamp;

/// The result of checking that a tree is empty.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub at: Timestamp,
    pub result: ProofResult,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofResult {
    /// The tree is empty, by this evidence.
    Proven(ProofMethod),
    /// The tree is not empty, and the kill goes on.
    Survivors(Vec<Survivor>),
}

impl Proof {
    pub fn proven(method: ProofMethod, at: Timestamp) -> Self {
        let result = ProofResult::Proven(method);
        Self { at, result }
    }

    pub fn survivors(survivors: Vec<Survivor>, at: Timestamp) -> Self {
        let result = ProofResult::Survivors(survivors);
        Self { at, result }
    }
}

/// The evidence that a tree is empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofMethod {
    /// The cgroup has no member and the shim no child.
    CgroupEmpty,
    /// The shim has no child, and no process has the task's environment tag.
    NoChildren,
    /// The shim was dead; the cgroup and the tagged processes were swept until none was found.
    Sweep,
    /// Nothing was ever started.
    NeverStarted,
    /// The machine has restarted since, which no process survives.
    Reboot,
}

/// A process that outlived a kill or its task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: i32,
    pub parent_pid: i32,
    pub command: String,
    /// The kernel's letter for its state.
    pub state: String,
}
