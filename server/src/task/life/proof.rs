//! The proof that a tree is empty, or the processes that disprove it.

use serde::{Deserialize, Serialize};

use crate::task::Timestamp;

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
    /// The work ran inside a client, where nothing can be proven; the known circumstances.
    Unproven(String),
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

/// The evidence that a tree is empty. A mark is the environment tag or the limit tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofMethod {
    /// The cgroup has no member, the shim no child, and no process the limit tag.
    CgroupEmpty,
    /// The shim has no child, and no process has a mark.
    NoChildren,
    /// The shim was dead; the cgroup, the marked processes and the leader's session were swept until
    /// none was seen.
    Sweep,
    /// Nothing was ever started.
    NeverStarted,
    /// The machine has restarted since, which no process survives.
    Reboot,
}

/// A process that outlived a kill or its task. Its pid is 0 if even that cannot be known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: i32,
    pub parent_pid: i32,
    pub command: String,
    /// The kernel's letter for its state.
    pub state: String,
}

impl Survivor {
    /// A process that was seen and could not be described. Its command says so.
    pub fn unnamed(pid: i32) -> Self {
        Self {
            pid,
            parent_pid: 0,
            command: "(seen, and gone or hidden before it could be described)".to_owned(),
            state: "?".to_owned(),
        }
    }
}
