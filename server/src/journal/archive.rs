//! The past, as it is on disk: a few connections that only read, and what they have read lately.
//!
//! A row that cannot be read costs itself: whoever asks for it by name gets an error that names it,
//! whoever lists gets the others.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::{Connection, OptionalExtension, Row, Rows};
use tokio::sync::Semaphore;

use super::{
    JournalError, Memory, PriorRequest,
    error::RecordError,
    file,
    present::Present,
    record::{self, uint},
    ring::{Shelf, TaskRecord, Weighed},
    sql,
};
use crate::task::{Event, Fact, IdKey, Revision, Seq, SessionIdle, TaskId, Timestamp};

/// How many long reads go on at once. Each costs a thread while it lasts, and a connection.
const LONG_READS: usize = 2;

/// What one batch of events may hold, as encoded: labels alone can make a record of a megabyte.
const BATCH_BYTES: usize = 1 << 20;

/// Reads what is no longer in memory.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    present: Arc<Present>,
    shelf: Shelf,
    /// Opened when first needed.
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

/// Where a finished task's records are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finished {
    /// The latest one.
    pub(super) latest: Revision,
    /// The one that its Spawn was answered with.
    pub(super) answer: Revision,
}

/// What was found after a revision.
#[derive(Debug)]
pub(super) enum Batch {
    /// At least one.
    Facts(Vec<Fact>),
    /// The first of them has been dropped meanwhile.
    Dropped {
        /// The first that can still be read.
        oldest: Revision,
    },
}

impl Archive {
    pub(super) fn new(path: PathBuf, present: Arc<Present>) -> Self {
        let permits = Arc::new(Semaphore::new(LONG_READS));
        Self {
            path,
            present,
            shelf: Shelf::default(),
            idle: Mutex::default(),
            permits,
        }
    }

    /// Reads a few rows on the spot: mostly they are in the page cache, and waking another thread
    /// would take several times as long.
    ///
    /// All of it is of one moment, that of its first read: what a row points to is there, even if it
    /// is being dropped.
    pub(super) fn read<T>(
        &self,
        read: impl FnOnce(&Self, &Connection) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| file::open_reader(&self.path), Ok)?;
        let answer = match connection.unchecked_transaction() {
            Ok(snapshot) => read(self, &snapshot),
            Err(source) => Err(JournalError::storage("beginning to read")(source)),
        };
        self.idle().push(connection);
        answer
    }

    /// Reads many rows on a thread of its own, where it holds up nobody.
    pub(super) async fn read_long<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self, &Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let archive = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            archive.read(read)
        });
        // It does not panic; so the runtime is going away.
        reading.await.unwrap_or(Err(JournalError::Closed))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happened at a revision, if it is in memory.
    pub(super) fn remembered(&self, revision: Revision) -> Option<Weighed> {
        self.present
            .at(revision)
            .or_else(|| self.shelf.at(revision))
    }

    /// What happened at a revision.
    pub(super) fn fact(
        &self,
        connection: &Connection,
        revision: Revision,
    ) -> Result<Weighed, JournalError> {
        if let Some(weighed) = self.remembered(revision) {
            return Ok(weighed);
        }
        let weighed = stored_fact(connection, revision)?;
        self.shelf.put(&weighed);
        Ok(weighed)
    }

    /// What happened at a revision to a task that points there.
    pub(super) fn event(
        &self,
        connection: &Connection,
        revision: Revision,
    ) -> Result<TaskRecord, JournalError> {
        of_a_task(&self.fact(connection, revision)?)
    }

    /// Up to `limit` events after a revision, without a gap; a damaged one, or one that is missing,
    /// ends the batch, or is the error.
    fn batch(
        &self,
        connection: &Connection,
        after: Revision,
        limit: usize,
    ) -> Result<Batch, JournalError> {
        let doing = || JournalError::storage("reading events");
        let oldest = oldest(connection).map_err(doing())?;
        if after.0 + 1 < oldest.0 {
            return Ok(Batch::Dropped { oldest });
        }
        let mut select = connection
            .prepare_cached(sql::EVENTS_AFTER)
            .map_err(doing())?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut rows = select
            .query([record::int(after.0), limit])
            .map_err(doing())?;
        let mut facts: Vec<Fact> = Vec::new();
        let mut bytes = 0;
        for revision in (after.0 + 1..).map(Revision) {
            match next_fact(&mut rows, revision) {
                Ok(Some(weighed)) => {
                    self.shelf.put(&weighed);
                    bytes += weighed.bytes;
                    facts.push(weighed.fact);
                }
                Ok(None) if facts.is_empty() => return Err(missing(revision)),
                Err(error) if facts.is_empty() => return Err(error),
                Ok(None) | Err(_) => break,
            }
            if bytes >= BATCH_BYTES {
                break;
            }
        }
        Ok(Batch::Facts(facts))
    }

    /// Those of the ids that no task has, some of which may have had one.
    pub(super) fn unknown(
        &self,
        connection: &Connection,
        mut ids: Vec<TaskId>,
        key: IdKey,
        had_a_task: impl Fn(Seq) -> bool,
    ) -> Result<Vec<(TaskId, Memory)>, JournalError> {
        let doing = || JournalError::storage("looking for tasks by their ids");
        let mut select = connection.prepare_cached(sql::ID_BY_SEQ).map_err(doing())?;
        let row = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?));
        let mut unknown = Vec::new();
        ids.retain(|id| self.present.task(id).is_none());
        for id in ids {
            let seq = key.seq(&id);
            let found = select.query_row([record::int(seq.0)], row).optional();
            match found.map_err(doing())? {
                Some((known, true)) if known == id.as_str() => {}
                None if had_a_task(seq) => unknown.push((id, Memory::Removed)),
                Some(_) | None => unknown.push((id, Memory::None)),
            }
        }
        Ok(unknown)
    }

    /// The request that was made under an id, and what became of it.
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
            answer: answer.map(|record| record.event),
        }))
    }
}

/// Up to `limit` facts after a revision that are no longer in the present.
///
/// Watchers that have fallen behind together read the same: whoever was held up by another one's
/// read looks first whether that has brought what it wants.
pub(super) async fn facts_after(
    archive: &Arc<Archive>,
    after: Revision,
    limit: usize,
) -> Result<Batch, JournalError> {
    let remembered = archive.shelf.after(after, limit);
    if !remembered.is_empty() {
        return Ok(Batch::Facts(remembered));
    }
    let read = move |archive: &Archive, connection: &Connection| {
        let remembered = archive.shelf.after(after, limit);
        if remembered.is_empty() {
            archive.batch(connection, after, limit)
        } else {
            Ok(Batch::Facts(remembered))
        }
    };
    archive.read_long(read).await
}

/// Where the records of the finished task with this id are.
pub(super) fn finished(
    connection: &Connection,
    id: &TaskId,
) -> Result<Option<Finished>, JournalError> {
    let revision = |row: &Row<'_>, column| row.get(column).map(|number| Revision(uint(number)));
    connection
        .prepare_cached(sql::FINISHED_BY_ID)
        .and_then(|mut find| {
            let place = |row: &Row<'_>| {
                Ok(Finished {
                    latest: revision(row, 0)?,
                    answer: revision(row, 1)?,
                })
            };
            find.query_row([id.as_str()], place).optional()
        })
        .map_err(JournalError::storage("looking for a finished task"))
}

/// The first event that is told.
fn oldest(connection: &Connection) -> rusqlite::Result<Revision> {
    connection
        .prepare_cached(sql::OLDEST_REVISION)?
        .query_row([], |row| row.get(0).map(|oldest| Revision(uint(oldest))))
}

/// What happened at a revision to a task that points there, from the disk.
pub(super) fn stored_event(
    connection: &Connection,
    revision: Revision,
) -> Result<TaskRecord, JournalError> {
    of_a_task(&stored_fact(connection, revision)?)
}

fn of_a_task(weighed: &Weighed) -> Result<TaskRecord, JournalError> {
    weighed.task_record().ok_or(JournalError::Damaged {
        revision: weighed.revision(),
        source: RecordError::NoTask,
    })
}

fn stored_fact(connection: &Connection, revision: Revision) -> Result<Weighed, JournalError> {
    let find = |mut find: rusqlite::CachedStatement<'_>| {
        let mut rows = find.query([record::int(revision.0)])?;
        Ok(next_fact(&mut rows, revision))
    };
    connection
        .prepare_cached(sql::EVENT_AT)
        .and_then(find)
        .map_err(JournalError::storage("reading an event"))??
        .ok_or_else(|| missing(revision))
}

fn missing(revision: Revision) -> JournalError {
    JournalError::Damaged {
        revision,
        source: RecordError::Missing,
    }
}

/// What is in the next row, which is to be the one at this revision; none if there is no row, or
/// only a later one.
fn next_fact(rows: &mut Rows<'_>, revision: Revision) -> Result<Option<Weighed>, JournalError> {
    let damaged = |source| JournalError::Damaged { revision, source };
    let row = rows
        .next()
        .map_err(|source| match JournalError::is_damage(&source) {
            true => damaged(RecordError::Unreadable(source)),
            false => JournalError::storage("reading an event")(source),
        })?;
    let Some(row) = row else { return Ok(None) };
    match row.get(0).map(uint) {
        Ok(found) if found == revision.0 => decode(row, revision).map(Some).map_err(damaged),
        Ok(_) | Err(_) => Ok(None),
    }
}

/// What is in a row of revision, at, kind, format, record and activity.
fn decode(row: &Row<'_>, revision: Revision) -> Result<Weighed, RecordError> {
    let at = Timestamp(uint(row.get(1)?));
    let kind: String = row.get(2)?;
    let format = row.get(3)?;
    let record = row.get_ref(4)?.as_bytes()?;
    let fact = if kind == record::SESSION_IDLE {
        let session_id = record::idle_session(format, record)?;
        Fact::SessionIdle(Arc::new(SessionIdle {
            revision,
            at,
            session_id,
        }))
    } else {
        let activity = row.get_ref(5)?.as_bytes_or_null()?;
        Fact::Task(Arc::new(Event {
            revision,
            at,
            kind: record::event_kind(&kind)?,
            task: Arc::new(record::task(format, record, revision)?),
            activity: activity.map(record::decode_activity).transpose()?,
        }))
    };
    Ok(Weighed {
        fact,
        bytes: record.len(),
    })
}
