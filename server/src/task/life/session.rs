//! The live tasks of a session, and the event that there are none left.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::task::{Event, EventKind, Kind, Revision, Seq, Timestamp};

/// The live tasks of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Activity {
    pub agents: u32,
    pub shells: u32,
    pub hosted: u32,
    /// The number of live tasks that are stale.
    #[serde(skip_serializing_if = "is_zero")]
    pub stale: u32,
    /// The numbers of the tasks of each kind that were created last, in the order of their creation. Their ids
    /// follow from them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub agent_seqs: Vec<Seq>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shell_seqs: Vec<Seq>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosted_seqs: Vec<Seq>,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Activity {
    /// Maximum number of tasks of a kind that are named: an event stays small in a session with many tasks.
    pub(crate) const MOST_NAMED: usize = 64;

    pub fn is_idle(&self) -> bool {
        self.live() == 0
    }

    /// Reports whether there are live tasks, and all of them are stale.
    pub(crate) fn is_only_stale(&self) -> bool {
        self.live() > 0 && u64::from(self.stale) >= self.live()
    }

    fn live(&self) -> u64 {
        let counts = [self.agents, self.shells, self.hosted];
        counts.into_iter().map(u64::from).sum()
    }

    /// The count of a kind, and the tasks that are named.
    pub(crate) fn of_kind(&mut self, kind: Kind) -> (&mut u32, &mut Vec<Seq>) {
        match kind {
            Kind::Agent => (&mut self.agents, &mut self.agent_seqs),
            Kind::Shell => (&mut self.shells, &mut self.shell_seqs),
            Kind::Hosted => (&mut self.hosted, &mut self.hosted_seqs),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
