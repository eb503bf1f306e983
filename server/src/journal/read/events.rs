//! Reading events from the file, in batches or one at a time.

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection, Row, Rows};

use super::{Lane, ReadPool, SizedEvent, SizedFact};
use crate::{
    journal::{
        JournalError, RecordError,
        record::{self, uint},
        sql,
    },
    task::{Event, Fact, Revision, SessionIdle, Timestamp},
};

/// Bound of a batch, as encoded: labels alone can make a record of a megabyte.
const BATCH_BYTES: usize = 1 << 20;

/// The facts after a revision.
#[derive(Debug)]
pub(super) enum FactsAfter {
    /// At least one.
    Facts(Vec<Fact>),
    /// The first of them was pruned meanwhile.
    Pruned { oldest: Revision },
}

/// Up to `limit` facts after a revision that are no longer in [`super::LiveState`].
///
/// Watchers that have fallen behind together want the same facts: one that had to wait for another's
/// read looks into the cache once more.
pub(super) async fn facts_after(
    pool: &Arc<ReadPool>,
    after: Revision,
    limit: usize,
) -> Result<FactsAfter, JournalError> {
    let cached = pool.cache.after(after, limit);
    if !cached.is_empty() {
        return Ok(FactsAfter::Facts(cached));
    }
    let read = move |pool: &ReadPool, connection: &Connection| {
        let cached = pool.cache.after(after, limit);
        if cached.is_empty() {
            batch(pool, connection, after, limit)
        } else {
            Ok(FactsAfter::Facts(cached))
        }
    };
    pool.read_long(Lane::Replay, read).await
}

/// A damaged or missing event ends the batch; if it is the first, it is the error.
fn batch(
    pool: &ReadPool,
    connection: &Connection,
    after: Revision,
    limit: usize,
) -> Result<FactsAfter, JournalError> {
    let failed = || JournalError::storage("reading events");
    let oldest = oldest(connection).map_err(failed())?;
    if after.0 + 1 < oldest.0 {
        return Ok(FactsAfter::Pruned { oldest });
    }
    let mut select = connection
        .prepare_cached(sql::EVENTS_AFTER)
        .map_err(failed())?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = select
        .query([record::int(after.0), limit])
        .map_err(failed())?;
    let mut facts: Vec<Fact> = Vec::new();
    let mut bytes = 0;
    for revision in (after.0 + 1..).map(Revision) {
        match next_fact(&mut rows, revision) {
            Ok(Some(sized)) => {
                pool.cache.put(&sized);
                bytes += sized.bytes;
                facts.push(sized.fact);
            }
            Ok(None) if facts.is_empty() => return Err(missing(revision)),
            Err(error) if facts.is_empty() => return Err(error),
            Ok(None) | Err(_) => break,
        }
        if bytes >= BATCH_BYTES {
            break;
        }
    }
    Ok(FactsAfter::Facts(facts))
}

/// The first event that is delivered.
fn oldest(connection: &Connection) -> rusqlite::Result<Revision> {
    connection
        .prepare_cached(sql::OLDEST_REVISION)?
        .query_row([], |row| row.get(0).map(|oldest| Revision(uint(oldest))))
}

/// The event at a revision that a task points to, from the file.
pub(in crate::journal) fn stored_event(
    connection: &Connection,
    revision: Revision,
) -> Result<SizedEvent, JournalError> {
    of_a_task(&stored_fact(connection, revision)?)
}

/// The event of a task that a fact is; any other fact is damage.
pub(super) fn of_a_task(sized: &SizedFact) -> Result<SizedEvent, JournalError> {
    sized.event().ok_or(JournalError::Damaged {
        revision: sized.revision(),
        source: RecordError::NoTask,
    })
}

/// The fact at a revision, from the file.
pub(super) fn stored_fact(
    connection: &Connection,
    revision: Revision,
) -> Result<SizedFact, JournalError> {
    let find = |mut find: CachedStatement<'_>| {
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

/// Reads the next row, which should have this revision; none if there is no row, or one with another
/// revision.
fn next_fact(rows: &mut Rows<'_>, revision: Revision) -> Result<Option<SizedFact>, JournalError> {
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

/// Decodes a row of revision, at, kind, format, record and activity.
fn decode(row: &Row<'_>, revision: Revision) -> Result<SizedFact, RecordError> {
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
    Ok(SizedFact {
        fact,
        bytes: record.len(),
    })
}
