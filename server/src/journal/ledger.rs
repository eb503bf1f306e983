//! What each fact does to the tables. Everything here happens inside the writer's transaction, and
//! an error means that the transaction is rolled back.

use std::{collections::HashSet, ops::Range, sync::Arc};

use rusqlite::{Connection, ErrorCode, params};

use super::{
    Entry, JournalError, archive,
    present::Present,
    record::{self, FORMAT, int},
    ring::TaskRecord,
    sql,
};
use crate::task::{
    Activity, Event, EventKind, QueueSettings, Revision, Seq, SpawnRequest, Task, TaskId, Timestamp,
};

/// A fact that is ready to be written, encoded by whoever appends it: the writer has enough to do.
#[derive(Debug)]
pub(super) struct Draft {
    kind: EventKind,
    task: Task,
    record: String,
    request: Option<RequestDraft>,
}

/// What is known of a fact only when it is written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) revision: Revision,
    pub(super) at: Timestamp,
    /// What it makes of its session, if anything.
    pub(super) activity: Option<Activity>,
}

#[derive(Debug)]
struct RequestDraft {
    /// None: it is kept only until its task begins.
    request_id: Option<String>,
    body: String,
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
            task,
            record,
            request,
        })
    }

    /// The event that it has become.
    pub(super) fn into_event(mut self, place: Place) -> TaskRecord {
        let Place {
            revision,
            at,
            activity,
        } = place;
        self.task.revision = revision;
        let bytes = self.record.len();
        let task = Arc::new(self.task);
        let event = Event {
            revision,
            at,
            kind: self.kind,
            task,
            activity,
        };
        TaskRecord {
            event: Arc::new(event),
            bytes,
        }
    }

    /// What happens.
    pub(super) fn kind(&self) -> EventKind {
        self.kind
    }

    /// To whom, as it is then.
    pub(super) fn task(&self) -> &Task {
        &self.task
    }

    fn misplaced(&self) -> JournalError {
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

/// A request without an id is not kept, once it is served: nobody can ask for it again, and it may hold
/// secrets.
fn is_kept(request: &SpawnRequest, task: &Task) -> bool {
    request.request_id.is_some() || task.is_waiting()
}

/// Writes one fact.
pub(super) fn append(
    connection: &Connection,
    draft: &Draft,
    place: Place,
) -> Result<(), JournalError> {
    let revision = place.revision;
    match draft.kind {
        EventKind::Created => create(connection, draft, revision)?,
        EventKind::Admitted
        | EventKind::Started
        | EventKind::Stopping
        | EventKind::LeaderExited
        | EventKind::Detached
        | EventKind::Stale
        | EventKind::Active
        | EventKind::KillOverdue
        | EventKind::Ended => change(connection, draft, revision)?,
        EventKind::Removed => return Err(draft.misplaced()),
    }
    insert_event(connection, draft, place).map_err(JournalError::storage("appending an event"))
}

fn insert_event(connection: &Connection, draft: &Draft, place: Place) -> rusqlite::Result<()> {
    connection
        .prepare_cached(sql::INSERT_EVENT)?
        .execute(params![
            int(place.revision.0),
            int(place.at.0),
            record::event_name(draft.kind),
            int(draft.task.seq.0),
            FORMAT,
            draft.record,
            place.activity.map(record::encode_activity),
        ])?;
    Ok(())
}

fn create(connection: &Connection, draft: &Draft, revision: Revision) -> Result<(), JournalError> {
    let task = &draft.task;
    let spec = &task.spec;
    let inserted = connection
        .prepare_cached(sql::INSERT_TASK)
        .and_then(|mut insert| {
            insert.execute(params![
                int(task.seq.0),
                task.id.as_str(),
                record::kind_name(spec.kind),
                spec.session_id,
                spec.parent.as_ref().map(TaskId::as_str),
                int(revision.0),
                started(task, revision),
                task.is_answered_waiting().then_some(int(revision.0)),
            ])
        });
    or_if_taken(inserted, || draft.misplaced())?;
    if let Some(request) = &draft.request {
        keep_request(connection, task, request)?;
    }
    if task.ended.is_some() {
        change(connection, draft, revision)
    } else {
        Ok(())
    }
}

fn keep_request(
    connection: &Connection,
    task: &Task,
    request: &RequestDraft,
) -> Result<(), JournalError> {
    let (seq, body) = (int(task.seq.0), &request.body);
    let Some(request_id) = &request.request_id else {
        return connection
            .prepare_cached(sql::INSERT_WAITING)
            .and_then(|mut insert| insert.execute(params![seq, FORMAT, body]))
            .map(drop)
            .map_err(JournalError::storage("keeping a request"));
    };
    let inserted = connection
        .prepare_cached(sql::INSERT_REQUEST)
        .and_then(|mut insert| insert.execute(params![seq, FORMAT, body, request_id]));
    or_if_taken(inserted, || JournalError::RequestTaken {
        request_id: request_id.clone(),
    })
}

/// Forgets what a task was to begin with, now that it has begun, or never will.
fn forget_waiting(connection: &Connection, task: &Task) -> Result<(), JournalError> {
    connection
        .prepare_cached(sql::DELETE_WAITING)
        .and_then(|mut delete| delete.execute([int(task.seq.0)]))
        .map(drop)
        .map_err(JournalError::storage("forgetting a request"))
}

/// Writes down how a queue is set; one that is as any other is not written down.
pub(super) fn set_queue(
    connection: &Connection,
    name: &str,
    settings: QueueSettings,
) -> Result<(), JournalError> {
    let run = || match settings == QueueSettings::default() {
        true => connection
            .prepare_cached(sql::DELETE_QUEUE)?
            .execute([name]),
        false => connection.prepare_cached(sql::SET_QUEUE)?.execute(params![
            name,
            settings.slots,
            settings.paused
        ]),
    };
    run()
        .map(drop)
        .map_err(JournalError::storage("setting a queue"))
}

fn change(connection: &Connection, draft: &Draft, revision: Revision) -> Result<(), JournalError> {
    let task = &draft.task;
    let (seq, at, started) = (int(task.seq.0), int(revision.0), started(task, revision));
    let changed = match &task.ended {
        None => connection
            .prepare_cached(sql::CHANGE_TASK)
            .and_then(|mut change| change.execute(params![seq, at, started])),
        Some(ended) => connection
            .prepare_cached(sql::END_TASK)
            .and_then(|mut end| {
                end.execute(params![
                    seq,
                    at,
                    started,
                    record::end_state_name(ended.state),
                    int(task.output_bytes),
                ])
            }),
    };
    if changed.map_err(JournalError::storage("changing a task"))? == 0 {
        return Err(draft.misplaced());
    }
    let begins = draft.kind == EventKind::Started || !task.is_live();
    if task.queued.is_some() && begins {
        forget_waiting(connection, task)?;
    }
    if task.is_live() {
        Ok(())
    } else {
        shelve(connection, task)
    }
}

/// Makes a finished task findable by its labels.
fn shelve(connection: &Connection, task: &Task) -> Result<(), JournalError> {
    let insert = |(key, value): (&String, &String)| {
        let mut insert = connection.prepare_cached(sql::INSERT_LABEL)?;
        insert
            .execute(params![key, value, int(task.seq.0)])
            .map(drop)
    };
    let mut labels = task.spec.labels.iter();
    labels
        .try_for_each(insert)
        .map_err(JournalError::storage("indexing a finished task"))
}

/// The finished tasks with these ids, each once. One that is not finished or not there fails all.
fn finished(
    connection: &Connection,
    present: &Present,
    ids: &[TaskId],
) -> Result<Vec<TaskRecord>, JournalError> {
    let mut seen = HashSet::new();
    let once = ids.iter().filter(|id| seen.insert(*id));
    once.map(|id| match archive::finished(connection, id)? {
        Some(finished) => archive::stored_event(connection, finished.latest),
        None if present.task(id).is_some() => Err(JournalError::NotFinished { id: id.clone() }),
        None => Err(JournalError::NotFound { id: id.clone() }),
    })
    .collect()
}

/// Forgets finished tasks. The events say so, from the given revision on.
pub(super) fn remove(
    connection: &Connection,
    present: &Present,
    ids: &[TaskId],
    oldest: Revision,
    first: Revision,
    at: Timestamp,
) -> Result<Vec<TaskRecord>, JournalError> {
    let last_states = finished(connection, present, ids)?;
    let mut removed = Vec::with_capacity(last_states.len());
    for (revision, last) in (first.0..).map(Revision).zip(last_states) {
        let task = Task::clone(&last.event.task);
        let kind = EventKind::Removed;
        let draft = Draft::new(Entry {
            kind,
            task,
            request: None,
        })?;
        let place = Place {
            revision,
            at,
            activity: None,
        };
        insert_event(connection, &draft, place)
            .and_then(|()| erase(connection, &draft.task, oldest))
            .map_err(JournalError::storage("removing a task"))?;
        removed.push(draft.into_event(place));
    }
    Ok(removed)
}

/// What it is known by goes as well where it lies below the `oldest` event that is told.
fn erase(connection: &Connection, task: &Task, oldest: Revision) -> rusqlite::Result<()> {
    let seq = int(task.seq.0);
    connection
        .prepare_cached(sql::DELETE_KEPT_EVENTS)?
        .execute([seq, int(oldest.0)])?;
    connection
        .prepare_cached(sql::DELETE_DELIVERED)?
        .execute([int(task.revision.0)])?;
    for (key, value) in &task.spec.labels {
        connection
            .prepare_cached(sql::DELETE_LABEL)?
            .execute(params![key, value, seq])?;
    }
    connection
        .prepare_cached(sql::DELETE_REQUEST)?
        .execute([seq])?;
    connection
        .prepare_cached(sql::DELETE_TASK)?
        .execute([seq])?;
    connection
        .prepare_cached(sql::RAISE_HIGHEST_REMOVED)?
        .execute([seq])?;
    Ok(())
}

/// Deletes what a task was known by until now, once nobody else needs it.
pub(super) fn drop_superseded(connection: &Connection, task: &Task) -> Result<(), JournalError> {
    let delete = |mut statement: rusqlite::CachedStatement<'_>| {
        statement.execute([int(task.revision.0), int(task.seq.0)])
    };
    connection
        .prepare_cached(sql::DELETE_SUPERSEDED)
        .and_then(delete)
        .map(drop)
        .map_err(JournalError::storage("dropping an old record"))
}

/// Drops the events of these revisions, but for those that a task is known by.
pub(super) fn compact(
    connection: &Connection,
    revisions: Range<Revision>,
) -> Result<(), JournalError> {
    let (from, to) = (int(revisions.start.0), int(revisions.end.0));
    let run = || {
        connection
            .prepare_cached(sql::DELETE_EVENTS)?
            .execute([from, to])?;
        connection
            .prepare_cached(sql::SET_OLDEST_REVISION)?
            .execute([to])
            .map(drop)
    };
    run().map_err(JournalError::storage("dropping old events"))
}

/// Writes down whose ends have been seen.
pub(super) fn mark_seen(connection: &Connection, seqs: &[Seq]) -> Result<(), JournalError> {
    let mark = |seq: &Seq| {
        let mut mark = connection.prepare_cached(sql::MARK_DELIVERED)?;
        mark.execute([int(seq.0)]).map(drop)
    };
    seqs.iter()
        .try_for_each(mark)
        .map_err(JournalError::storage("noting what was seen"))
}

fn started(task: &Task, revision: Revision) -> Option<i64> {
    task.started.as_ref().map(|_| int(revision.0))
}

fn or_if_taken(
    inserted: rusqlite::Result<usize>,
    taken: impl FnOnce() -> JournalError,
) -> Result<(), JournalError> {
    match inserted {
        Ok(_) => Ok(()),
        Err(rusqlite::Error::SqliteFailure(failure, _))
            if failure.code == ErrorCode::ConstraintViolation =>
        {
            Err(taken())
        }
        Err(source) => Err(JournalError::Storage {
            operation: "creating a task",
            source,
        }),
    }
}
