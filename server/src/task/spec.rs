//! What is asked for with a Spawn, and what everybody may know of it.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{Kind, Rules, StopPolicy, TaskId};

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
    /// Whom it holds, for how long, and beside whom.
    #[serde(default, skip_serializing_if = "Rules::are_default")]
    pub rules: Rules,
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
    /// Whom it holds, for how long, and beside whom.
    #[serde(default, skip_serializing_if = "Rules::are_default")]
    pub rules: Rules,
    /// Whether its script ended in an `&`, which is no longer there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub had_ampersand: bool,
}
