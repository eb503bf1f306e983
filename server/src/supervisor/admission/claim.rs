//! A claim: what a task wants for as long as it lives, and in which order those who wait are looked at.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    config::Limits,
    task::{Exclusive, ExclusiveMode, Seq, Spec, Task, TaskId},
};

/// What a task wants for as long as it lives.
#[derive(Debug, Clone)]
pub(in crate::supervisor) struct Claim {
    pub(super) seq: Seq,
    pub(super) id: TaskId,
    pub(super) spec: Arc<Spec>,
}

/// How a claim was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Standing {
    /// It has all that it wants.
    Begins,
    /// Its turn is to come.
    Waits,
}

/// Why a claim was not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The server has too many.
    #[error("{running} tasks are live, and {max} may be")]
    Server {
        /// How many there are.
        running: usize,
        /// How many there may be.
        max: usize,
    },
    /// The session has too many.
    #[error("{running} tasks of session {session_id:?} are live, and {max} may be")]
    Session {
        /// Which.
        session_id: String,
        /// How many there are.
        running: usize,
        /// How many there may be.
        max: usize,
    },
    /// Too many have the label.
    #[error("{running} tasks with label {label:?} = {value:?} are live, and {max} may be")]
    Label {
        /// Which.
        label: String,
        /// With which value.
        value: String,
        /// How many there are.
        running: usize,
        /// How many there may be.
        max: usize,
    },
    /// Another task has the key, or waits for it.
    #[error("the exclusive key {key:?} belongs to {holder}")]
    KeyHeld {
        /// Which.
        key: String,
        /// Whose it is, or is going to be.
        holder: TaskId,
    },
    /// Too many wait.
    #[error("{waiting} tasks wait for their turn, and {max} may")]
    QueueFull {
        /// How many there are.
        waiting: usize,
        /// How many there may be.
        max: usize,
    },
}

/// The order in which those who wait are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// To replace a holder; the newest first.
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

    /// Whether it was said that it may have to wait.
    pub(super) fn is_patient(&self) -> bool {
        self.queue().is_some() || self.mode() == Some(ExclusiveMode::Queue)
    }

    pub(super) fn turn(&self) -> Turn {
        match self.mode() {
            Some(ExclusiveMode::Replace) => Turn::Replacing(Reverse(self.seq)),
            Some(ExclusiveMode::Reject | ExclusiveMode::Queue) | None => Turn::Queued(self.seq),
        }
    }

    /// Only those that are limited are counted.
    pub(super) fn labels<'a>(
        &'a self,
        limits: &'a Limits,
    ) -> impl Iterator<Item = (&'a String, &'a String)> {
        let labels = &self.spec.labels;
        limits
            .per_label
            .keys()
            .filter_map(|key| labels.get_key_value(key))
    }

    pub(super) fn session(&self) -> Option<&str> {
        Some(self.spec.session_id.as_str()).filter(|session| !session.is_empty())
    }
}
