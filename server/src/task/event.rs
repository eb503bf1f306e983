//! The events of a task.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Activity, Task, Timestamp};

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
    /// The leader runs, or a worker may work.
    Started,
    /// A stop was requested, its soft phase is over, or a forced stop ended a grace.
    Stopping,
    /// An attempt has failed, and another one follows.
    Restarting,
    /// The leader of another attempt runs.
    Restarted,
    /// The leader exited and orphans live on.
    LeaderExited,
    /// The task moved from the foreground to the background.
    Detached,
    /// The task has been silent for too long.
    Stale,
    /// A task that was stale has shown activity again, or one that needed input has written output.
    Active,
    Ready,
    /// The task was not ready in time.
    NotReady,
    /// The silent task waits for input.
    NeedsInput,
    /// A worker has reported progress, or delivered a result that does not end the task.
    Progress,
    /// A kill did not empty the tree in time.
    KillOverdue,
    /// Output is dropped from now on.
    OutputLimit,
    /// Lines of the output match a pattern.
    Matched,
    /// A request has changed the task.
    Updated,
    Ended,
    Removed,
}

/// The effect of an event on its task's entry in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventRole {
    /// The task is new.
    Creation,
    /// The task has a new state.
    Change,
    /// The task is no longer in the journal.
    Removal,
}

impl EventKind {
    /// The role of the event.
    pub fn role(self) -> EventRole {
        match self {
            Self::Created => EventRole::Creation,
            Self::Removed => EventRole::Removal,
            Self::Admitted
            | Self::Started
            | Self::Stopping
            | Self::Restarting
            | Self::Restarted
            | Self::LeaderExited
            | Self::Detached
            | Self::Stale
            | Self::Active
            | Self::Ready
            | Self::NotReady
            | Self::NeedsInput
            | Self::Progress
            | Self::KillOverdue
            | Self::OutputLimit
            | Self::Matched
            | Self::Updated
            | Self::Ended => EventRole::Change,
        }
    }
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
    /// The live tasks of the session after it, if the task has one and the number changed.
    pub activity: Option<Activity>,
}

impl Event {
    /// Reports whether Spawn is answered with this event, unless it was answered before.
    pub fn answers_spawn(&self) -> bool {
        let starts_or_ends = self.kind == EventKind::Started || self.kind == EventKind::Ended;
        let is_creation = self.kind.role() == EventRole::Creation;
        starts_or_ends || (is_creation && self.task.is_answered_waiting())
    }

    /// Reports whether the event is delivered with the tail of the task's output. An end without any
    /// output has an empty tail, see [`Event::ended_silent`].
    pub fn has_output_tail(&self) -> bool {
        self.kind == EventKind::Ended && self.task.output_bytes > 0
    }

    /// Reports whether this is the end of a task that wrote nothing.
    pub fn ended_silent(&self) -> bool {
        self.kind == EventKind::Ended && self.task.output_bytes == 0
    }
}
