//! An entry that is ready to be written. The appender encodes it: the writer has enough to do.

use std::sync::Arc;

use crate::{
    journal::{Entry, JournalError, read::SizedEvent},
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
#[derive(Debug, Clone, Copy)]
pub(super) struct Written {
    pub(super) revision: Revision,
    pub(super) at: Timestamp,
    /// The counts of its session after it, if it changes them.
    pub(super) activity: Option<Activity>,
}

/// An encoded spawn request.
#[derive(Debug)]
pub(super) struct RequestDraft {
    /// None: the request is kept only until its task starts.
    pub(super) request_id: Option<String>,
    pub(super) body: String,
}

impl Draft {
    pub(super) fn new(entry: Entry) -> Result<Self, JournalError> {
        let Entry {
            kind,
            task,
            request,
        } = entry;
        let encode = || {
            let record = serde_json::to_string(&task)?;
            let kept = request.as_ref().filter(|request| is_kept(request, &task));
            let request = kept.map(RequestDraft::new).transpose()?;
            Ok((record, request))
        };
        let (record, request) = encode().map_err(|source| JournalError::Unwritable {
            id: task.id.clone(),
            source,
        })?;
        Ok(Self {
            kind,
            task: Arc::new(task),
            record,
            request,
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

impl RequestDraft {
    fn new(request: &SpawnRequest) -> Result<Self, serde_json::Error> {
        Ok(Self {
            request_id: request.request_id.clone(),
            body: serde_json::to_string(request)?,
        })
    }
}

/// A request without an id is not kept once it is served: it cannot be repeated, and may hold secrets.
fn is_kept(request: &SpawnRequest, task: &Task) -> bool {
    request.request_id.is_some() || task.is_waiting()
}
