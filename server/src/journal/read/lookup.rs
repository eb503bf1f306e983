//! Finding a task or a request by its id.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};

use super::ReadPool;
use crate::{
    journal::{
        JournalError, Memory, PriorRequest,
        record::{self, uint},
        sql,
    },
    task::{IdKey, Revision, Seq, TaskId},
};

/// The revisions of a finished task's records.
#[derive(Debug, Clone, Copy)]
pub(in crate::journal) struct FinishedTask {
    pub(in crate::journal) latest: Revision,
    /// The event with which its Spawn was answered.
    pub(super) answer: Revision,
}

/// The finished task with this id.
pub(in crate::journal) fn finished(
    connection: &Connection,
    id: &TaskId,
) -> Result<Option<FinishedTask>, JournalError> {
    let revision = |row: &Row<'_>, column| row.get(column).map(|number| Revision(uint(number)));
    connection
        .prepare_cached(sql::FINISHED_BY_ID)
        .and_then(|mut find| {
            let found = |row: &Row<'_>| {
                Ok(FinishedTask {
                    latest: revision(row, 0)?,
                    answer: revision(row, 1)?,
                })
            };
            find.query_row([id.as_str()], found).optional()
        })
        .map_err(JournalError::storage("looking for a finished task"))
}

impl ReadPool {
    /// Those of the ids that belong to no task. `had_a_task` tells which numbers were given out.
    pub(super) fn unknown(
        &self,
        connection: &Connection,
        mut ids: Vec<TaskId>,
        key: IdKey,
        had_a_task: impl Fn(Seq) -> bool,
    ) -> Result<Vec<(TaskId, Memory)>, JournalError> {
        let failed = || JournalError::storage("looking for tasks by their ids");
        let mut select = connection
            .prepare_cached(sql::ID_BY_SEQ)
            .map_err(failed())?;
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?));
        let mut unknown = Vec::new();
        ids.retain(|id| self.live.task(id).is_none());
        for id in ids {
            let seq = key.seq(&id);
            let found = select.query_row([record::int(seq.0)], row).optional();
            match found.map_err(failed())? {
                Some((known, true)) if known == id.as_str() => {}
                None if had_a_task(seq) => unknown.push((id, Memory::Removed)),
                Some(_) | None => unknown.push((id, Memory::None)),
            }
        }
        Ok(unknown)
    }

    /// The request with this id, and the task that it created.
    pub(super) fn prior_request(
        &self,
        connection: &Connection,
        request_id: &str,
    ) -> Result<Option<PriorRequest>, JournalError> {
        let prior = |row: &Row<'_>| {
            let request = record::request(row.get(0)?, row.get_ref(1)?.as_bytes()?);
            let answer = row.get::<_, Option<i64>>(4)?;
            Ok((
                request,
                uint(row.get(2)?),
                uint(row.get(3)?),
                answer.map(uint).map(Revision),
            ))
        };
        let row = connection
            .prepare_cached(sql::REQUEST_BY_ID)
            .and_then(|mut find| find.query_row([request_id], prior).optional())
            .map_err(JournalError::storage("looking for a request"))?;
        let Some((request, created, latest, answer)) = row else {
            return Ok(None);
        };
        let request = request.map_err(|source| JournalError::Damaged {
            revision: Revision(created),
            source,
        })?;
        let task = Arc::clone(&self.event(connection, Revision(latest))?.event.task);
        let answer = answer
            .map(|revision| self.event(connection, revision))
            .transpose()?;
        Ok(Some(PriorRequest {
            task,
            request,
            answer: answer.map(|sized| sized.event),
        }))
    }
}
