//! The end of a leader, or of hosted work.

use serde::{Deserialize, Serialize};

use crate::task::{Moment, Signal, WorkerStatus};

/// The end of a leader.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaderEnd {
    pub outcome: Outcome,
    pub at: Moment,
}

/// The ways for a leader or hosted work to end, never folded into one number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The exit code.
    Exited(i32),
    Signalled {
        signal: Signal,
        core_dumped: bool,
    },
    /// The leader never ran.
    SpawnFailed(SpawnFailure),
    /// The end was not recorded; the known circumstances.
    Unknown(String),
    /// The worker of a hosted task delivered a result.
    Worker(WorkerStatus),
}

/// The reason why a leader never ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnFailure {
    pub stage: SpawnStage,
    /// The path of the program or directory that the step was about; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// The system's error text.
    pub message: String,
    /// The system's error number; 0 if there is none.
    pub errno: i32,
}

/// A step of starting a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnStage {
    Shim,
    TaskFile,
    Pipes,
    Process,
    WorkingDirectory,
    Descriptors,
    Exec,
}

impl std::fmt::Display for SpawnFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let step = match self.stage {
            SpawnStage::Shim => "start the shim",
            SpawnStage::TaskFile => "create the task file",
            SpawnStage::Pipes => "create the output pipes",
            SpawnStage::Process => "create the process",
            SpawnStage::WorkingDirectory => "enter the working directory",
            SpawnStage::Descriptors => "arrange the descriptors",
            SpawnStage::Exec => "execute",
        };
        let Self { path, message, .. } = self;
        match path.as_str() {
            "" => write!(f, "cannot {step}: {message}"),
            path => write!(f, "cannot {step} {path}: {message}"),
        }
    }
}
