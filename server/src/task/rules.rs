//! The rules that a task was given at its Spawn: whom it holds, for how long, and beside whom.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a task may stay in the foreground, where nobody says otherwise.
pub const DEFAULT_FOREGROUND_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a foreground task may be held by nobody, where nobody says otherwise.
pub const DEFAULT_REATTACH_WINDOW: Duration = Duration::from_secs(10);

/// All of them. Records from before there were any have none.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rules {
    /// That it begins in the foreground, and what ends that.
    pub foreground: Option<Foreground>,
    /// What becomes of those who outlive the leader.
    pub orphan_policy: OrphanPolicy,
    /// How long it may be silent before it is stopped.
    pub idle_timeout: Option<Duration>,
    /// When it counts as stale.
    pub stale: Option<Stale>,
    /// What it must have for itself.
    pub exclusive: Option<Exclusive>,
    /// The queue in which it waits for its turn.
    pub queue: Option<String>,
}

impl Rules {
    /// Whether they are those of a task that was given none.
    pub fn are_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How a task holds its caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Foreground {
    /// For how long, from its start.
    pub timeout: Duration,
    /// What happens then.
    pub on_timeout: OnForegroundTimeout,
    /// What happens when nobody is held any more.
    pub on_disconnect: OnDisconnect,
    /// How long that must have been so.
    pub reattach_window: Duration,
}

/// What happens to a task that has been in the foreground for too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnForegroundTimeout {
    /// It goes on in the background.
    Detach,
    /// It is stopped.
    Cancel,
}

/// What happens to a foreground task that nobody holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDisconnect {
    /// It is stopped.
    Cancel,
    /// It goes on in the background.
    Detach,
    /// Nothing.
    Keep,
}

/// What becomes of those who outlive the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrphanPolicy {
    /// The task goes on until they are gone.
    #[default]
    Track,
    /// They are killed.
    Kill,
    /// They are left to themselves.
    Abandon,
}

/// When a task counts as stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stale {
    /// After this much silence.
    pub after: Duration,
    /// What happens then, apart from the event.
    pub action: StaleAction,
}

/// What happens to a stale task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StaleAction {
    /// Nothing.
    Notify,
    /// It is stopped.
    Cancel,
}

/// What a task must have for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exclusive {
    /// What it is called.
    pub key: String,
    /// What happens when another has it.
    pub mode: ExclusiveMode,
}

/// What happens when another task has the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusiveMode {
    /// The newcomer is refused.
    Reject,
    /// The holder is stopped first.
    Replace,
    /// The newcomer waits.
    Queue,
}
