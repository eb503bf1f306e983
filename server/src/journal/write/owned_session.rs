//! Sessions with owners.

use std::time::Duration;

use rusqlite::params;

use super::operation::Batch;
use crate::journal::{JournalError, sql};

/// Stores the reattach window of a session with owners; one without is not stored.
pub(super) fn set_owned(
    batch: &mut Batch<'_>,
    session_id: &str,
    reattach_window: Option<Duration>,
) -> Result<(), JournalError> {
    let run = || match reattach_window {
        None => batch
            .connection
            .prepare_cached(sql::DISOWN_SESSION)?
            .execute([session_id]),
        Some(window) => {
            let micros = i64::try_from(window.as_micros()).unwrap_or(i64::MAX);
            batch
                .connection
                .prepare_cached(sql::OWN_SESSION)?
                .execute(params![session_id, micros])
        }
    };
    run().map_err(JournalError::storage("setting the owner of a session"))?;
    batch.upkeep += 1;
    Ok(())
}
