//! Settings of queues.

use rusqlite::params;

use super::operation::Batch;
use crate::{
    journal::{JournalError, sql},
    task::QueueSettings,
};

/// Stores the settings of a queue; default settings are not stored.
pub(super) fn set_queue(
    batch: &mut Batch<'_>,
    name: &str,
    settings: QueueSettings,
) -> Result<(), JournalError> {
    let run = || match settings == QueueSettings::default() {
        true => batch
            .connection
            .prepare_cached(sql::DELETE_QUEUE)?
            .execute([name]),
        false => batch
            .connection
            .prepare_cached(sql::SET_QUEUE)?
            .execute(params![name, settings.slots, settings.paused]),
    };
    run().map_err(JournalError::storage("setting a queue"))?;
    batch.upkeep += 1;
    Ok(())
}
