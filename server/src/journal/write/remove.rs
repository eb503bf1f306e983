//! Removing finished tasks: all of them, or none.

use std::collections::HashSet;

use rusqlite::{Connection, params};

use super::{
    append::insert_event,
    draft::{Draft, Written},
    operation::Batch,
    work,
};
use crate::{
    journal::{
        JournalError,
        read::{self, SizedEvent},
        record::int,
        sql,
    },
    task::{EventKind, Revision, Task, TaskId},
};

/// Removes tasks, and appends a Removed event with the last state of each.
pub(super) fn remove(batch: &mut Batch<'_>, ids: &[TaskId]) -> Result<(), JournalError> {
    for last in finished(batch, ids)? {
        let mut draft = Draft::of_task(EventKind::Removed, Task::clone(&last.event.task))?;
        let written = Written {
            revision: batch.next_revision,
            at: batch.at,
            activity: None,
        };
        insert_event(batch.connection, &draft, &written)
            .and_then(|()| delete(batch.connection, &draft.task, batch.oldest))
            .map_err(JournalError::storage("removing a task"))?;
        batch.push(draft.event(written));
    }
    Ok(())
}

/// The last events of the tasks with these ids, each once.
fn finished(batch: &Batch<'_>, ids: &[TaskId]) -> Result<Vec<SizedEvent>, JournalError> {
    let mut distinct = HashSet::new();
    let ids = ids.iter().filter(|id| distinct.insert(*id));
    ids.map(
        |id| match read::finished(batch.connection, batch.id_key, id)? {
            Some(finished) => {
                let event = read::stored_event(batch.connection, finished.latest)?;
                read::of_task(event, id)
            }
            None if batch.live.task(id).is_some() => {
                Err(JournalError::NotFinished { id: id.clone() })
            }
            None => Err(JournalError::NotFound { id: id.clone() }),
        },
    )
    .collect()
}

/// Deletes every row of a task, and those of its events that are below the `oldest` delivered one.
fn delete(connection: &Connection, task: &Task, oldest: Revision) -> rusqlite::Result<()> {
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
    work::delete(connection, task.seq)?;
    for statement in [
        sql::DELETE_REQUEST,
        sql::DELETE_TASK,
        sql::RAISE_HIGHEST_REMOVED,
    ] {
        connection.prepare_cached(statement)?.execute([seq])?;
    }
    Ok(())
}
