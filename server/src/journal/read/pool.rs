//! Connections that only read, and a cache of what they have read.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::Semaphore;

use super::{LiveState, SizedEvent, SizedFact, cache::ReadCache, events};
use crate::{
    journal::{JournalError, file},
    task::Revision,
};

/// Long reads at once. Each costs a thread while it lasts, and a connection.
const LONG_READS: usize = 2;

/// Reads what is no longer in memory.
#[derive(Debug)]
pub(in crate::journal) struct ReadPool {
    path: PathBuf,
    pub(super) live: Arc<LiveState>,
    pub(super) cache: ReadCache,
    /// Opened when first needed.
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl ReadPool {
    pub(in crate::journal) fn new(path: PathBuf, live: Arc<LiveState>) -> Self {
        Self {
            path,
            live,
            cache: ReadCache::default(),
            idle: Mutex::default(),
            permits: Arc::new(Semaphore::new(LONG_READS)),
        }
    }

    /// Reads a few rows in place: mostly they are in the page cache, and waking another thread would
    /// take several times as long.
    ///
    /// All of it is read from one snapshot, that of the first read: a row that another one points to is
    /// there, even if it is being deleted.
    pub(in crate::journal) fn read<T>(
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

    /// Reads many rows on another thread, where it blocks no runtime worker.
    pub(in crate::journal) async fn read_long<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Self, &Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let permits = Arc::clone(&self.permits);
        let permit = permits
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        let pool = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            pool.read(read)
        });
        // It does not panic, so an error means that the runtime shuts down.
        reading.await.unwrap_or(Err(JournalError::Closed))
    }

    /// The fact at a revision, from memory or from the file.
    pub(super) fn fact(
        &self,
        connection: &Connection,
        revision: Revision,
    ) -> Result<SizedFact, JournalError> {
        let in_memory = self.live.at(revision);
        if let Some(sized) = in_memory.or_else(|| self.cache.at(revision)) {
            return Ok(sized);
        }
        let sized = events::stored_fact(connection, revision)?;
        self.cache.put(&sized);
        Ok(sized)
    }

    /// The event at a revision that a task points to.
    pub(super) fn event(
        &self,
        connection: &Connection,
        revision: Revision,
    ) -> Result<SizedEvent, JournalError> {
        events::of_a_task(&self.fact(connection, revision)?)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
