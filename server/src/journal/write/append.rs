//! Appending an event: what it changes in the tables.

use rusqlite::{Connection, ErrorCode, params};

use super::{
    draft::{Draft, RequestDraft, Written},
    operation::Batch,
    sessions,
};
use crate::{
    journal::{
        JournalError, prune,
        record::{self, FORMAT, int},
        sql,
    },
    task::{Activity, EventRole, Placement, Revision, Task, TaskId},
};

/// Appends an event and, if it ends the last live task of a session, that the session is idle.
pub(super) fn append(batch: &mut Batch<'_>, draft: &mut Draft) -> Result<(), JournalError> {
    let written = Written {
        revision: batch.next_revision,
        at: batch.at,
        activity: batch.sessions.count(draft.kind.role(), &draft.task),
    };
    match draft.kind.role() {
        EventRole::Creation => create(batch.connection, draft, written.revision)?,
        EventRole::Change => change(batch.connection, draft, written.revision)?,
        EventRole::Removal => return Err(draft.misplaced()),
    }
    insert_event(batch.connection, draft, &written)
        .map_err(JournalError::storage("appending an event"))?;
    let is_idle = written.activity.as_ref().is_some_and(Activity::is_idle);
    batch.push(draft.event(written));
    if is_idle {
        sessions::append_idle(batch, &draft.task.spec.session_id)?;
    }
    prune::drop_superseded(batch.connection, batch.live, &draft.task, batch.oldest)
}

/// Inserts the row of an event.
pub(super) fn insert_event(
    connection: &Connection,
    draft: &Draft,
    written: &Written,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(sql::INSERT_EVENT)?
        .execute(params![
            int(written.revision.0),
            int(written.at.0),
            record::event_name(draft.kind),
            int(draft.task.seq.0),
            FORMAT,
            draft.record,
            written.activity.as_ref().map(record::encode_activity),
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
                started_revision(task, revision),
                task.is_answered_waiting().then_some(int(revision.0)),
            ])
        });
    unless_taken(inserted, || draft.misplaced())?;
    if let Some(request) = &draft.request {
        keep_request(connection, task, request)?;
    }
    match task.is_live() {
        true => Ok(()),
        false => change(connection, draft, revision),
    }
}

fn keep_request(
    connection: &Connection,
    task: &Task,
    request: &RequestDraft,
) -> Result<(), JournalError> {
    let RequestDraft { request_id, digest } = request;
    let inserted = connection
        .prepare_cached(sql::INSERT_REQUEST)
        .and_then(|mut insert| {
            let (seq, digest) = (int(task.seq.0), digest.as_bytes());
            insert.execute(params![seq, FORMAT, digest, request_id])
        });
    unless_taken(inserted, || JournalError::RequestTaken {
        request_id: request_id.clone(),
    })
}

fn change(connection: &Connection, draft: &Draft, revision: Revision) -> Result<(), JournalError> {
    let task = &draft.task;
    let (seq, at) = (int(task.seq.0), int(revision.0));
    let started = started_revision(task, revision);
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
                    int(task.stored_bytes),
                    task.placement() == Placement::Foreground,
                ])
            }),
    };
    if changed.map_err(JournalError::storage("changing a task"))? == 0 {
        return Err(draft.misplaced());
    }
    match task.is_live() {
        true => Ok(()),
        false => insert_labels(connection, task),
    }
}

/// Makes a finished task findable by its labels.
fn insert_labels(connection: &Connection, task: &Task) -> Result<(), JournalError> {
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

fn started_revision(task: &Task, revision: Revision) -> Option<i64> {
    task.started.as_ref().map(|_| int(revision.0))
}

fn unless_taken(
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
