//! The one write operation: a change, and where its result is sent.

use std::{sync::Arc, time::Duration};

use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{
    append, draft::Draft, owned_session, queue, remove, reserve::UseOfReserve,
    sessions::PendingCounts, work::WorkChange,
};
use crate::{
    journal::{
        Entry, JournalError, prune,
        read::{LiveState, SizedFact},
        request::RequestKey,
    },
    task::{Event, EventKind, IdKey, QueueSettings, Revision, Seq, TaskId, Timestamp},
};

/// The result of an operation: the events of tasks that it has made.
pub(super) type Written = Result<Vec<Arc<Event>>, JournalError>;

/// A change to be made durable.
#[derive(Debug)]
pub(super) struct WriteOperation {
    pub(super) change: Change,
    pub(super) reply: oneshot::Sender<Written>,
}

/// Everything that can be written.
#[derive(Debug)]
pub(in crate::journal) enum Change {
    Append(Box<Draft>),
    Remove(Vec<TaskId>),
    PruneEvents {
        up_to: Revision,
    },
    MarkDelivered(Vec<Seq>),
    SetQueue {
        name: String,
        settings: QueueSettings,
    },
    /// Records the reattach window of a session with owners; `None`: it has no owner any more.
    SetOwned {
        session_id: String,
        reattach_window: Option<Duration>,
    },
    Work {
        seq: Seq,
        change: WorkChange,
    },
}

/// An open transaction, and the facts that it has made so far.
#[derive(Debug)]
pub(in crate::journal) struct Batch<'a> {
    pub(in crate::journal) connection: &'a Connection,
    pub(super) id_key: IdKey,
    pub(super) live: &'a LiveState,
    pub(super) sessions: PendingCounts<'a>,
    pub(super) at: Timestamp,
    /// The oldest event that is delivered.
    pub(in crate::journal) oldest: Revision,
    pub(super) next_revision: Revision,
    pub(super) facts: Vec<SizedFact>,
    /// Its weight in the WAL, in events, beside the facts.
    pub(in crate::journal) upkeep: u64,
}

impl Change {
    /// A fact to append. It is encoded here, by its appender.
    pub(super) fn append(entry: Entry, key: &RequestKey) -> Result<Self, JournalError> {
        Ok(Self::Append(Box::new(Draft::new(entry, key)?)))
    }

    /// Reports whether the change may use the space that is reserved for a full disk.
    pub(super) fn use_of_reserve(&self) -> UseOfReserve {
        match self {
            Self::Append(draft) => UseOfReserve::of(draft.kind),
            Self::Remove(_) => UseOfReserve::of(EventKind::Removed),
            Self::PruneEvents { .. } | Self::MarkDelivered(_) | Self::SetQueue { .. } => {
                UseOfReserve::Denied
            }
            Self::SetOwned {
                reattach_window, ..
            } => match reattach_window {
                Some(_) => UseOfReserve::Denied,
                // It follows stops, and frees space.
                None => UseOfReserve::Allowed,
            },
            Self::Work { change, .. } => change.use_of_reserve(),
        }
    }

    /// Writes the change. After an error the transaction is rolled back, and it may be applied again.
    pub(super) fn apply(&mut self, batch: &mut Batch<'_>) -> Result<(), JournalError> {
        match self {
            Self::Append(draft) => append::append(batch, draft),
            Self::Remove(ids) => remove::remove(batch, ids),
            Self::PruneEvents { up_to } => prune::prune_events(batch, *up_to),
            Self::MarkDelivered(seqs) => prune::mark_delivered(batch, seqs),
            Self::SetQueue { name, settings } => queue::set_queue(batch, name, *settings),
            Self::SetOwned {
                session_id,
                reattach_window,
            } => owned_session::set_owned(batch, session_id, *reattach_window),
            Self::Work { seq, change } => change.apply(batch, *seq),
        }
    }
}

impl Batch<'_> {
    /// Adds the fact that was written at `next_revision`.
    pub(super) fn push(&mut self, fact: impl Into<SizedFact>) {
        self.next_revision.0 += 1;
        self.facts.push(fact.into());
    }
}
