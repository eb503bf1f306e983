//! A claim: everything that a task occupies while it lives, and its position in line.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    config::Limits,
    task::{Exclusive, ExclusiveMode, Seq, Spec, Task, TaskId},
};

#[derive(Debug, Clone)]
pub(in crate::supervisor) struct Claim {
    pub(super) seq: Seq,
    pub(super) id: TaskId,
    pub(super) spec: Arc<Spec>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Decision {
    /// The task may start now.
    Admitted,
    /// The task waits.
    Queued,
}

/// The reason why a task is neither admitted nor queued.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("task limit reached: {running} of {max} are running")]
    Server { running: usize, max: usize },
    #[error("task limit of session {session_id:?} reached: {running} of {max} are running")]
    Session {
        session_id: String,
        running: usize,
        max: usize,
    },
    #[error("task limit of label {label:?} = {value:?} reached: {running} of {max} are running")]
    Label {
        label: String,
        value: String,
        running: usize,
        max: usize,
    },
    /// Another task has the key, or is in line for it.
    #[error("the exclusive key {key:?} is held by {holder}")]
    KeyHeld { key: String, holder: TaskId },
    /// Another task that differs has the key, or is in line for it.
    #[error("the exclusive key {key:?} is held by {holder}, which differs in {field}")]
    KeyDiffers {
        key: String,
        holder: TaskId,
        /// The path of the first difference.
        field: String,
    },
    /// A caller inside of a task wants to replace or use a task on which it may not act.
    #[error(
        "the exclusive key {key:?} is held by a task that is not a descendant of {caller}, which makes the call"
    )]
    KeyNotYours { key: String, caller: TaskId },
    #[error("queue limit reached: {waiting} of {max} tasks are waiting")]
    QueueFull { waiting: usize, max: usize },
}

/// The position of a waiting claim, in every line in which it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum QueuePosition {
    /// Replaces the holder of its key; the newest first.
    Replacing(Reverse<Seq>),
    /// First come, first served.
    Queued(Seq),
}

impl Claim {
    pub(in crate::supervisor) fn of(task: &Task) -> Self {
        Self {
            seq: task.seq,
            id: task.id.clone(),
            spec: Arc::clone(&task.spec),
        }
    }

    fn exclusive(&self) -> Option<&Exclusive> {
        self.spec.exclusive.as_ref()
    }

    pub(super) fn key(&self) -> Option<&str> {
        self.exclusive().map(|exclusive| exclusive.key.as_str())
    }

    pub(super) fn queue(&self) -> Option<&str> {
        self.spec.queue.as_deref()
    }

    pub(super) fn mode(&self) -> Option<ExclusiveMode> {
        self.exclusive().map(|exclusive| exclusive.mode)
    }

    pub(super) fn position(&self) -> QueuePosition {
        match self.mode() {
            Some(ExclusiveMode::Replace) => QueuePosition::Replacing(Reverse(self.seq)),
            Some(ExclusiveMode::Reject | ExclusiveMode::Queue | ExclusiveMode::Ensure) | None => {
                QueuePosition::Queued(self.seq)
            }
        }
    }

    /// The labels that have a limit, each with its value and the limit.
    pub(super) fn limited_labels<'a>(
        &'a self,
        limits: &'a Limits,
    ) -> impl Iterator<Item = (&'a String, &'a String, usize)> {
        limits.per_label.iter().filter_map(|(label, max)| {
            let (label, value) = self.spec.labels.get_key_value(label)?;
            Some((label, value, *max))
        })
    }

    pub(super) fn session(&self) -> Option<&str> {
        Some(self.spec.session_id.as_str()).filter(|session| !session.is_empty())
    }
}
