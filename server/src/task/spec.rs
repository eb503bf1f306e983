//! A task's specification: the options of a Spawn, defaults filled in.

mod difference;
pub(super) mod pattern;
pub(super) mod policy;
pub(super) mod readiness;
pub(super) mod restart;
pub(super) mod terminal;

use std::{collections::BTreeMap, ops::Not, path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::{
    Environment, Exclusive, ExclusiveMode, Foreground, Input, OrphanPolicy, OutputPolicy, Ready,
    Restart, Rights, Silence, StopPolicy, TaskId, Terminal,
};

/// A task's specification, without the values of its environment variables.
///
/// A new option is a field here and in `TaskSpec`. It is left out of the record while it has its
/// default, so that a record is as short as its task is plain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    pub kind: Kind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Empty: no session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    pub command: Command,
    /// An absolute path. Empty in a request: the server's own default.
    pub working_directory: PathBuf,
    #[serde(default, skip_serializing_if = "Environment::is_default")]
    pub environment: Environment,
    /// Maximum time in the background.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Maximum time without output or activity of a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Duration>,
    #[serde(default, skip_serializing_if = "StopPolicy::is_default")]
    pub stop: StopPolicy,
    /// Present: the task starts in the foreground.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub foreground: Option<Foreground>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silence: Option<Silence>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<Exclusive>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    #[serde(default, skip_serializing_if = "OrphanPolicy::is_default")]
    pub orphan_policy: OrphanPolicy,
    #[serde(default, skip_serializing_if = "OutputPolicy::is_default")]
    pub output: OutputPolicy,
    /// Present: the task has a stdin to write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Input>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Terminal>,
    /// Present: the task has a readiness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Ready>,
    /// Present: the task is started again after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restart>,
    /// The calls that its processes may make.
    #[serde(default, skip_serializing_if = "Rights::is_default")]
    pub rights: Rights,
    /// The requested script ended in `&`, which `command` no longer has.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub had_ampersand: bool,
}

impl Spec {
    /// A task that does this work with every default; a shell task, if it has a command.
    pub fn new(command: Command) -> Self {
        Self {
            kind: match command {
                Command::Argv(_) | Command::Shell { .. } => Kind::Shell,
                Command::Hosted { .. } => Kind::Hosted,
            },
            name: String::new(),
            session_id: String::new(),
            parent: None,
            labels: BTreeMap::new(),
            command,
            working_directory: PathBuf::new(),
            environment: Environment::default(),
            timeout: None,
            idle_timeout: None,
            stop: StopPolicy::default(),
            foreground: None,
            silence: None,
            exclusive: None,
            queue: None,
            orphan_policy: OrphanPolicy::default(),
            output: OutputPolicy::default(),
            input: None,
            terminal: None,
            ready: None,
            restart: None,
            rights: Rights::default(),
            had_ampersand: false,
        }
    }

    /// True if the task may wait for a slot, a limit or its turn: it asks for a queue, or for the mode
    /// QUEUE.
    pub(crate) fn may_wait(&self) -> bool {
        let exclusive = self.exclusive.as_ref();
        let queues = |exclusive: &Exclusive| match exclusive.mode {
            ExclusiveMode::Queue => true,
            ExclusiveMode::Reject | ExclusiveMode::Replace | ExclusiveMode::Ensure => false,
        };
        self.queue.is_some() || exclusive.is_some_and(queues)
    }
}

/// The kind of work that a task does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A process tree.
    Shell,
    /// A process tree that is a subagent.
    Agent,
    /// Work inside a client.
    Hosted,
}

/// The work to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// A program and its arguments; never empty.
    Argv(Vec<String>),
    Shell {
        /// The script that follows `-c`.
        script: String,
        /// The shell, if the client chose one.
        program: Option<PathBuf>,
    },
    /// No command: a worker inside a client does the work.
    Hosted {
        /// The time without a message of the worker after which it is lost.
        lease: Duration,
    },
}

/// A request of Spawn, secrets included. A repeated `request_id` is compared by it. The journal keeps
/// it; no client receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpawnRequest {
    pub request_id: Option<String>,
    /// The specification as requested: its directory may be empty, and its script may end in `&`.
    pub spec: Spec,
    /// The environment variables to set. Their names are also in the specification.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, String>,
}
