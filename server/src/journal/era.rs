//! The era: within one, a revision that was told names one event for ever.
//!
//! Where facts are only to survive processes, a power cut may take some that were told, and so may a
//! damaged WAL; their revisions are then given out again. A new era begins with that, and whoever asks
//! for what follows on a revision of the last one is told that it is of another. Nobody can say whether
//! anything was lost in a power cut, so each counts that a server did not live to see through.

use rusqlite::Connection;
use uuid::Uuid;

use super::{Boot, Durability, sql, wal::Soundness};

/// What the file says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    /// None: the first one, named like the state directory.
    pub(super) era: Option<Uuid>,
    /// The boot in which facts were told that only the page cache may have had; none where all have
    /// reached the disk since.
    pub(super) unsynced: Option<Uuid>,
}

impl Mark {
    /// As it is while this server has the file.
    fn now(&self, soundness: Soundness, durability: Durability, Boot(boot): Boot) -> Self {
        let boot = Uuid::from_bytes(boot);
        let is_cut_off = self.unsynced.is_some_and(|unsynced| unsynced != boot);
        let is_new = is_cut_off || soundness == Soundness::CutShort;
        Self {
            era: if is_new {
                Some(Uuid::now_v7())
            } else {
                self.era
            },
            unsynced: match durability {
                Durability::Process => Some(boot),
                Durability::Power => None,
            },
        }
    }
}

/// Enters the era that it is now, a new one where facts may have been lost. That is on the disk before
/// any fact is told, or is tried again by the next server.
pub(super) fn enter(
    connection: &Connection,
    found: &Mark,
    soundness: Soundness,
    durability: Durability,
    boot: Boot,
) -> Option<Uuid> {
    let now = found.now(soundness, durability, boot);
    if now == *found {
        return now.era;
    }
    if let (true, Some(era)) = (now.era != found.era, now.era) {
        tracing::warn!(
            epoch = %era,
            "facts that were told may be lost: watchers of before have to begin anew"
        );
    }
    let synchronous = |level: &str| connection.pragma_update(None, "synchronous", level);
    let write = || {
        synchronous("FULL")?;
        let text = |id: Option<Uuid>| id.map(|id| id.to_string());
        connection.execute(sql::SET_ERA, [text(now.era), text(now.unsynced)])?;
        match durability {
            Durability::Process => synchronous("NORMAL"),
            Durability::Power => Ok(()),
        }
    };
    if let Err(error) = write() {
        tracing::warn!(%error, "that the journal is in use cannot be written down");
    }
    now.era
}

/// Everything is about to be on the disk.
pub(super) fn leave(connection: &Connection) {
    if let Err(error) = connection.execute(sql::SET_SYNCED, []) {
        tracing::warn!(%error, "that the journal was closed cannot be written down");
    }
}
