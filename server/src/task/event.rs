//! The events of a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Activity, Tail, Task, Timestamp};

/// An event's number in the journal: gap-free, never reused within an epoch. 0 precedes the first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The intent is durable.
    Created,
    /// The task left the queue.
    Admitted,
    /// The leader runs.
    Started,
    /// A stop was requested, or a forced stop ended a grace.
    Stopping,
    /// The leader exited and orphans live on.
    LeaderExited,
    /// The task moved from the foreground to the background.
    Detached,
    /// The task has been silent for too long.
    Stale,
    /// A stale task has written output again.
    Active,
    /// A kill did not empty the tree in time.
    KillOverdue,
    Ended,
    Removed,
}

/// One event. It keeps its revision for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub revision: Revision,
    /// The time at which it became durable.
    pub at: Timestamp,
    pub kind: EventKind,
    /// The task right after it.
    pub task: Arc<Task>,
    /// The end of the output, with [`EventKind::Ended`].
    pub tail: Option<Tail>,
    /// The live tasks of the session after it, if the task has one and the number changed.
    pub activity: Option<Activity>,
}
