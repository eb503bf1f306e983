//! Facts and events with their encoded size, by which caches, batches and pages are bounded.

use std::sync::Arc;

use crate::task::{Event, Fact, Revision};

/// A fact with its encoded size.
#[derive(Debug, Clone)]
pub(in crate::journal) struct SizedFact {
    pub(in crate::journal) fact: Fact,
    pub(in crate::journal) bytes: usize,
}

/// An event of a task with its encoded size.
#[derive(Debug, Clone)]
pub(in crate::journal) struct SizedEvent {
    pub(in crate::journal) event: Arc<Event>,
    pub(in crate::journal) bytes: usize,
}

impl From<SizedEvent> for SizedFact {
    fn from(SizedEvent { event, bytes }: SizedEvent) -> Self {
        Self {
            fact: Fact::Task(event),
            bytes,
        }
    }
}

impl SizedFact {
    pub(super) fn revision(&self) -> Revision {
        self.fact.revision()
    }

    /// None for a fact of a session.
    pub(super) fn event(&self) -> Option<SizedEvent> {
        let event = Arc::clone(self.fact.event()?);
        Some(SizedEvent {
            event,
            bytes: self.bytes,
        })
    }
}
