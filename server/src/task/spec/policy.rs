//! The groups of a specification: environment, stop, foreground, silence, exclusive key, orphans, output.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::task::{Pattern, Signal};

/// Default time between the stop signal and the kill.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(5);
/// Default time before the stop signal for a worker that listens.
pub(crate) const DEFAULT_SOFT_GRACE: Duration = Duration::from_secs(10);
/// Default time in the foreground.
pub(crate) const DEFAULT_FOREGROUND_TIMEOUT: Duration = Duration::from_secs(60);
/// Default time for a client to attach first, or again.
pub(crate) const DEFAULT_REATTACH_WINDOW: Duration = Duration::from_secs(10);

const SIGTERM: Signal = Signal(15);

/// Changes to the base environment, without the values of the variables that are set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Environment {
    /// Variables to remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
    #[serde(default)]
    pub defaults: EnvironmentDefaults,
    /// The sorted names of the variables to set.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variable_names: Vec<String>,
}

impl Environment {
    pub(in crate::task) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The variables between the base environment and the request's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EnvironmentDefaults {
    /// No pager, no editor, no colour, no prompts.
    #[default]
    NonInteractive,
    None,
}

/// The way in which a task is stopped: a soft phase if a worker listens, the signal, the grace, then the kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopPolicy {
    pub grace: Duration,
    pub signal: Signal,
    /// The longest soft phase; zero for none.
    #[serde(default = "default_soft_grace")]
    pub soft_grace: Duration,
}

fn default_soft_grace() -> Duration {
    DEFAULT_SOFT_GRACE
}

impl Default for StopPolicy {
    fn default() -> Self {
        Self {
            grace: DEFAULT_GRACE,
            signal: SIGTERM,
            soft_grace: DEFAULT_SOFT_GRACE,
        }
    }
}

impl StopPolicy {
    pub(in crate::task) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The rules of a task that starts in the foreground.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground {
    /// Maximum time in the foreground, from the start.
    pub timeout: Duration,
    pub on_timeout: OnForegroundTimeout,
    /// Action when the last attached client disconnects.
    pub on_disconnect: OnDisconnect,
    /// Time to attach first or again, before `on_disconnect` applies.
    pub reattach_window: Duration,
}

/// Action when a task has been in the foreground for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnForegroundTimeout {
    Detach,
    Cancel,
}

/// Action when the last client attached to a foreground task disconnects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    Cancel,
    Detach,
    /// The task stays in the foreground.
    Keep,
}

/// The rules for a task that has become silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silence {
    /// Time without output or activity of a worker after which the task is stale.
    pub stale_after: Duration,
    pub on_stale: OnStale,
}

/// Action when a task becomes stale, besides the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnStale {
    Notify,
    Cancel,
}

/// The rules for a task that may wait for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// Time without output after which the task is looked at, besides the moment at which it becomes
    /// stale.
    pub notify_after: Option<Duration>,
}

/// A key that only one live task has at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusive {
    pub key: String,
    pub mode: ExclusiveMode,
    /// Digests of the values of the task's environment variables, by name: ENSURE compares tasks by them.
    /// Empty in a request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, ValueDigest>,
}

/// A keyed digest of the value of an environment variable. It is compared with others of the same state
/// directory, and shown to no client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValueDigest(pub u128);

/// Behaviour of a task whose key has a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusiveMode {
    /// The new task is refused.
    Reject,
    /// The holder is stopped first.
    Replace,
    /// The new task waits.
    Queue,
    /// An equal holder is the answer; a different one refuses the new task.
    Ensure,
}

/// Treatment of processes that outlive the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanPolicy {
    /// The task continues until they are gone.
    #[default]
    Track,
    Kill,
    /// The task ends and leaves them running, unsupervised.
    Abandon,
}

impl OrphanPolicy {
    pub(in crate::task) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The rules for a task's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPolicy {
    /// The most bytes on disk, framing included.
    pub max_bytes: u64,
    /// Bytes of output kept from the beginning when the rest rotates.
    pub head_bytes: u64,
    pub on_limit: OnOutputLimit,
    /// Patterns to look for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<Pattern>,
}

/// Treatment of output beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnOutputLimit {
    /// The oldest output behind the head makes room for the newest.
    Rotate,
    /// New output is dropped.
    Truncate,
    /// The task is killed.
    Kill,
}

impl OutputPolicy {
    const DEFAULT_MAX_BYTES: u64 = 64 << 20;
    const DEFAULT_HEAD_BYTES: u64 = 1 << 20;
    /// The smallest limit.
    pub const MIN_MAX_BYTES: u64 = 256 << 10;
    /// The bytes of a limit that the head cannot have.
    pub const MIN_TAIL_BYTES: u64 = 192 << 10;

    /// The policy of a limit, with everything else by default.
    pub fn with_limit(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            head_bytes: Self::DEFAULT_HEAD_BYTES.min(max_bytes / 4),
            on_limit: OnOutputLimit::Rotate,
            patterns: Vec::new(),
        }
    }

    pub(in crate::task) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for OutputPolicy {
    fn default() -> Self {
        Self::with_limit(Self::DEFAULT_MAX_BYTES)
    }
}
