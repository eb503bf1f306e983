//! The live tasks of a session, and the event that there are none left.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Kind, Revision, Timestamp};

/// The number of live tasks of a session, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    pub agents: u32,
    pub shells: u32,
    pub hosted: u32,
}

impl Activity {
    pub fn is_idle(self) -> bool {
        self == Self::default()
    }

    /// The count with one more task of a kind.
    #[must_use]
    pub fn with(mut self, kind: Kind) -> Self {
        let count = self.count(kind);
        *count = count.saturating_add(1);
        self
    }

    /// The count with one task of a kind less.
    #[must_use]
    pub fn without(mut self, kind: Kind) -> Self {
        let count = self.count(kind);
        *count = count.saturating_sub(1);
        self
    }

    fn count(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Agent => &mut self.agents,
            Kind::Shell => &mut self.shells,
            Kind::Hosted => &mut self.hosted,
        }
    }
}

/// The event that a session has no live task left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionIdle {
    pub revision: Revision,
    /// The time at which it became durable.
    pub at: Timestamp,
    /// Never empty.
    pub session_id: String,
}

/// An entry of the journal: an event of a task or of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact {
    Task(Arc<Event>),
    SessionIdle(Arc<SessionIdle>),
}

/// The kind of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FactKind {
    Task(EventKind),
    SessionIdle,
}

impl Fact {
    pub(crate) fn kind(&self) -> FactKind {
        match self {
            Self::Task(event) => FactKind::Task(event.kind),
            Self::SessionIdle(_) => FactKind::SessionIdle,
        }
    }

    pub(crate) fn revision(&self) -> Revision {
        match self {
            Self::Task(event) => event.revision,
            Self::SessionIdle(idle) => idle.revision,
        }
    }

    /// The event, if it is one of a task.
    pub(crate) fn event(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Task(event) => Some(event),
            Self::SessionIdle(_) => None,
        }
    }
}
