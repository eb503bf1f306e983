//! An entry that is ready to be written. The appender encodes it: the writer has enough to do.

use std::sync::Arc;

use crate::{
    journal::{
        Entry, JournalError,
        read::SizedEvent,
        request::{RequestDigest, RequestKey},
    },
    task::{Activity, Event, EventKind, Revision, SpawnRequest, Task, Timestamp},
};

/// An encoded entry.
#[derive(Debug)]
pub(in crate::journal) struct Draft {
    pub(super) kind: EventKind,
    pub(super) task: Arc<Task>,
    pub(super) record: String,
    pub(super) request: Option<RequestDraft>,
}

/// The parts of an event that are set when it is written.
#[derive(Debug, Clone)]
pub(super) struct Written {
    pub(super) revision: Revision,
    pub(super) at: Timestamp,
    /// The activity of its session after it, if it changes that.
    pub(super) activity: Option<Activity>,
}

/// The part of a spawn request that is kept as long as its task.
#[derive(Debug)]
pub(super) struct RequestDraft {
    pub(super) request_id: String,
    pub(super) digest: RequestDigest,
}

impl Draft {
    pub(super) fn new(entry: Entry, key: &RequestKey) -> Result<Self, JournalError> {
        let draft = Self::of_task(entry.kind, entry.task)?;
        let keep = |request: SpawnRequest| {
            let digest = key.digest(&request);
            let request_id = request.request_id?;
            Some(digest.map(|digest| RequestDraft { request_id, digest }))
        };
        let request = entry.request.and_then(keep).transpose();
        Ok(Self {
            request: request.map_err(unwritable(&draft.task))?,
            ..draft
        })
    }

    /// An event without a request.
    pub(super) fn of_task(kind: EventKind, task: Task) -> Result<Self, JournalError> {
        let record = serde_json::to_string(&task).map_err(unwritable(&task))?;
        Ok(Self {
            kind,
            task: Arc::new(task),
            record,
            request: None,
        })
    }

    /// The event that this becomes.
    pub(super) fn event(&mut self, written: Written) -> SizedEvent {
        let Written {
            revision,
            at,
            activity,
        } = written;
        // Copies nothing: the event of an attempt that was rolled back is gone.
        Arc::make_mut(&mut self.task).revision = revision;
        let event = Event {
            revision,
            at,
            kind: self.kind,
            task: Arc::clone(&self.task),
            activity,
        };
        SizedEvent {
            event: Arc::new(event),
            bytes: self.record.len(),
        }
    }

    pub(super) fn misplaced(&self) -> JournalError {
        JournalError::Misplaced {
            id: self.task.id.clone(),
            kind: self.kind,
        }
    }
}

fn unwritable(task: &Task) -> impl FnOnce(serde_json::Error) -> JournalError + use<> {
    let id = task.id.clone();
    move |source| JournalError::Unwritable { id, source }
}
