//! The epoch: the id under which a revision names one event for ever.
//!
//! A power cut may take facts that were delivered, unless each commit is synced; a damaged WAL may,
//! too. Their revisions are then given out again, for other facts. So a new epoch begins, and a client
//! that asks for events after a revision of the old one is told that the epoch has changed. It cannot
//! be known whether a power cut cost anything: each one counts that happened while a server had the
//! file open.
//!
//! ```text
//! open: epoch kept, or a new one ──> "unsynced in this boot" on disk ──> facts ──> close: "synced"
//! ```

use rusqlite::Connection;
use uuid::Uuid;

use super::wal::Soundness;
use crate::journal::{Boot, Durability, sql};

/// The epoch as the file has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EpochRecord {
    pub(super) epoch: Uuid,
    /// The boot in which facts may have been delivered before they reached the disk; none if all of
    /// them have reached it since.
    pub(super) unsynced_boot: Option<Uuid>,
}

impl EpochRecord {
    /// The record while this server has the file open.
    fn opened(self, soundness: Soundness, durability: Durability, Boot(boot): Boot) -> Self {
        let boot = Uuid::from_bytes(boot);
        let power_was_cut = self.unsynced_boot.is_some_and(|unsynced| unsynced != boot);
        let begins_anew = power_was_cut || soundness == Soundness::CutShort;
        Self {
            epoch: if begins_anew {
                Uuid::now_v7()
            } else {
                self.epoch
            },
            unsynced_boot: match durability {
                Durability::Process => Some(boot),
                Durability::Power => None,
            },
        }
    }
}

/// Returns the epoch from now on: a new one if facts may have been lost. The record is synced before
/// any fact is delivered; if that fails, the next server tries again.
pub(super) fn open(
    connection: &Connection,
    found: EpochRecord,
    soundness: Soundness,
    durability: Durability,
    boot: Boot,
) -> Uuid {
    let opened = found.opened(soundness, durability, boot);
    if opened == found {
        return opened.epoch;
    }
    if opened.epoch != found.epoch {
        tracing::warn!(
            epoch = %opened.epoch,
            "events may have been lost: a new epoch begins, and watchers have to start over"
        );
    }
    if let Err(error) = write(connection, opened, durability) {
        tracing::warn!(%error, "could not mark the journal as open");
    }
    opened.epoch
}

fn write(
    connection: &Connection,
    record: EpochRecord,
    durability: Durability,
) -> rusqlite::Result<()> {
    let synchronous = |level: &str| connection.pragma_update(None, "synchronous", level);
    synchronous("FULL")?;
    let boot = record.unsynced_boot.map(|boot| boot.to_string());
    connection.execute(sql::SET_EPOCH, (record.epoch.to_string(), boot))?;
    match durability {
        Durability::Process => synchronous("NORMAL"),
        Durability::Power => Ok(()),
    }
}

/// Records that every fact is about to reach the disk.
pub(in crate::journal) fn close(connection: &Connection) {
    if let Err(error) = connection.execute(sql::SET_SYNCED, []) {
        tracing::warn!(%error, "could not mark the journal as closed");
    }
}
