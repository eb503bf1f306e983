//! What is known of a session: how many of its tasks are live.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Event, EventKind, Kind, Revision, Timestamp};

/// How many tasks of a session are live, by their kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    /// Subagents.
    pub agents: u32,
    /// Process trees.
    pub shells: u32,
}

impl Activity {
    /// Whether nothing is live.
    pub fn is_idle(self) -> bool {
        self == Self::default()
    }

    /// With one more of a kind.
    #[must_use]
    pub fn with(mut self, kind: Kind) -> Self {
        let count = self.count(kind);
        *count = count.saturating_add(1);
        self
    }

    /// With one less of a kind.
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
        }
    }
}

/// That no task of a session is live any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionIdle {
    /// Its number.
    pub revision: Revision,
    /// When it became durable.
    pub at: Timestamp,
    /// Which session; never empty.
    pub session_id: String,
}

/// What has a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// Something happened to a task.
    Task(Arc<Event>),
    /// A session has become idle.
    SessionIdle(Arc<SessionIdle>),
}

/// What kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactKind {
    /// That this happened to a task.
    Task(EventKind),
    /// That a session has become idle.
    SessionIdle,
}

impl Fact {
    /// Of which kind it is.
    pub fn kind(&self) -> FactKind {
        match self {
            Self::Task(event) => FactKind::Task(event.kind),
            Self::SessionIdle(_) => FactKind::SessionIdle,
        }
    }

    /// Its number.
    pub fn revision(&self) -> Revision {
        match self {
            Self::Task(event) => event.revision,
            Self::SessionIdle(idle) => idle.revision,
        }
    }

    /// What happened to a task, if it was one.
    pub fn event(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Task(event) => Some(event),
            Self::SessionIdle(_) => None,
        }
    }
}
