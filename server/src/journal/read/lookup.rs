//! Finding a task or a request by its id.

use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension, Row};

use super::{ReadPool, SizedEvent};
use crate::{
    journal::{
        JournalError, Memory, PriorRequest, RecordError,
        record::{self, FORMAT, uint},
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

/// The row of a task, found by the number that its id encodes.
struct TaskRow {
    id: String,
    is_finished: bool,
    latest: Revision,
    /// None for a task that has not been answered.
    answer: Option<Revision>,
}

impl TaskRow {
    fn read(connection: &Connection, seq: Seq) -> Result<Option<Self>, JournalError> {
        let row = |row: &Row<'_>| {
            let answer = row.get::<_, Option<i64>>(3)?;
            Ok(Self {
                id: row.get(0)?,
                is_finished: row.get(1)?,
                latest: Revision(uint(row.get(2)?)),
                answer: answer.map(uint).map(Revision),
            })
        };
        connection
            .prepare_cached(sql::TASK_BY_SEQ)
            .and_then(|mut find| find.query_row([record::int(seq.0)], row).optional())
            .map_err(JournalError::storage("looking for a task by its id"))
    }

    /// Reports whether it is the row of the task with this id. An id of another kind with the same number
    /// is that of no task; any other id in the row is damage.
    fn is_of(&self, key: IdKey, id: &TaskId) -> Result<bool, JournalError> {
        if self.id == id.as_str() {
            return Ok(true);
        }
        match self.id.parse::<TaskId>() {
            Ok(other) if key.seq(&other) == key.seq(id) => Ok(false),
            Ok(_) | Err(_) => Err(of_another_task(self.latest)),
        }
    }
}

fn of_another_task(revision: Revision) -> JournalError {
    JournalError::Damaged {
        revision,
        source: RecordError::OfAnotherTask,
    }
}

/// The finished task with this id.
pub(in crate::journal) fn finished(
    connection: &Connection,
    key: IdKey,
    id: &TaskId,
) -> Result<Option<FinishedTask>, JournalError> {
    match TaskRow::read(connection, key.seq(id))? {
        Some(row) if row.is_of(key, id)? && row.is_finished => Ok(Some(FinishedTask {
            latest: row.latest,
            answer: row.answer.unwrap_or(row.latest),
        })),
        Some(_) | None => Ok(None),
    }
}

/// The event, if it is one of the task with this id; any other is damage.
pub(in crate::journal) fn of_task(
    event: SizedEvent,
    id: &TaskId,
) -> Result<SizedEvent, JournalError> {
    match event.event.task.id == *id {
        true => Ok(event),
        false => Err(of_another_task(event.event.revision)),
    }
}

/// The index by which a request is found. In a damaged one a request may seem to be new, and would be
/// executed twice; its table still has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestIndex {
    Sound,
    Damaged,
}

impl RequestIndex {
    pub(super) fn check(connection: &Connection) -> Self {
        let found = connection.query_row(sql::CHECK_REQUESTS, [], |row| row.get::<_, String>(0));
        let fault = match found {
            Ok(found) if found == "ok" => return Self::Sound,
            Ok(found) => found,
            Err(error) => error.to_string(),
        };
        tracing::warn!(
            fault,
            "the index of the request ids is damaged; requests are found without it"
        );
        Self::Damaged
    }

    /// The statements that find a request, in the order of their use.
    fn statements(self) -> &'static [&'static str] {
        match self {
            Self::Sound => &[sql::REQUEST_BY_ID],
            // Its table may be the damaged one.
            Self::Damaged => &[sql::REQUEST_BY_SCAN, sql::REQUEST_BY_ID],
        }
    }
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
        let mut unknown = Vec::new();
        ids.retain(|id| self.live.task(id).is_none());
        for id in ids {
            let seq = key.seq(&id);
            match TaskRow::read(connection, seq)? {
                Some(row) if row.is_of(key, &id)? && row.is_finished => {}
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
        index: RequestIndex,
        request_id: &str,
        is_same: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<PriorRequest>, JournalError> {
        let prior = |row: &Row<'_>| {
            let is_same = match row.get(0)? {
                FORMAT => Ok(is_same(row.get_ref(1)?.as_bytes()?)),
                unknown => Err(RecordError::UnknownFormat(unknown)),
            };
            let answer = row.get::<_, Option<i64>>(4)?;
            Ok((
                is_same,
                uint(row.get(2)?),
                uint(row.get(3)?),
                answer.map(uint).map(Revision),
            ))
        };
        let find = |statement: &&str| {
            connection
                .prepare_cached(statement)
                .and_then(|mut find| find.query_row([request_id], prior).optional())
                .transpose()
        };
        let found = index.statements().iter().find_map(find).transpose();
        let found = found.map_err(JournalError::storage("looking for a request"))?;
        let Some((is_same, created, latest, answer)) = found else {
            return Ok(None);
        };
        let is_same = is_same.map_err(|source| JournalError::Damaged {
            revision: Revision(created),
            source,
        })?;
        let task = Arc::clone(&self.event(connection, Revision(latest))?.event.task);
        let answer = answer
            .map(|revision| of_task(self.event(connection, revision)?, &task.id))
            .transpose()?;
        Ok(Some(PriorRequest {
            task,
            is_same,
            answer: answer.map(|sized| sized.event),
        }))
    }
}
