//! Deleting events that are no longer delivered.

use rusqlite::Connection;

use crate::{
    journal::{JournalError, read::LiveState, record::int, sql, write::Batch},
    task::{Revision, Task},
};

/// Deleted events that grow the WAL as much as one that is appended: they lie side by side.
const DELETED_PER_APPENDED: u64 = 4;

/// Deletes the events below a revision, except those that hold the state of a task.
pub(in crate::journal) fn prune_events(
    batch: &mut Batch<'_>,
    up_to: Revision,
) -> Result<(), JournalError> {
    let up_to = up_to.max(batch.oldest);
    let run = || {
        let (from, to) = (int(batch.oldest.0), int(up_to.0));
        batch
            .connection
            .prepare_cached(sql::DELETE_EVENTS)?
            .execute([from, to])?;
        batch
            .connection
            .prepare_cached(sql::SET_OLDEST_REVISION)?
            .execute([to])
    };
    run().map_err(JournalError::storage("deleting old events"))?;
    batch.upkeep += (up_to.0 - batch.oldest.0).div_ceil(DELETED_PER_APPENDED);
    batch.oldest = up_to;
    Ok(())
}

/// Deletes the record that held a task's state until now, if it is below the `oldest` delivered event:
/// it was kept for the task alone.
pub(in crate::journal) fn drop_superseded(
    connection: &Connection,
    live: &LiveState,
    task: &Task,
    oldest: Revision,
) -> Result<(), JournalError> {
    if oldest.0 <= 1 {
        return Ok(());
    }
    let Some(before) = live.task(&task.id).map(|live| live.task.revision) else {
        return Ok(());
    };
    if before >= oldest {
        return Ok(());
    }
    connection
        .prepare_cached(sql::DELETE_SUPERSEDED)
        .and_then(|mut delete| delete.execute([int(before.0), int(task.seq.0)]))
        .map(drop)
        .map_err(JournalError::storage("deleting an old record"))
}
