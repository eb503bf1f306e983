//! Connections that only read, and a cache of what they have read.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rusqlite::Connection;
use tokio::sync::OnceCell;

use super::{
    LiveState, SizedEvent, SizedFact,
    cache::ReadCache,
    events,
    lookup::RequestIndex,
    readers::{Lane, Readers},
};
use crate::{
    journal::{JournalError, file},
    task::Revision,
};

/// Reads what is no longer in memory.
#[derive(Debug)]
pub(in crate::journal) struct ReadPool {
    path: PathBuf,
    pub(super) live: Arc<LiveState>,
    pub(super) cache: ReadCache,
    /// Opened when first needed.
    idle: Mutex<Vec<Connection>>,
    readers: Readers,
    /// Checked before the first use.
    request_index: OnceCell<RequestIndex>,
}

impl ReadPool {
    /// Starts the threads of long reads.
    pub(in crate::journal) fn start(path: PathBuf, live: Arc<LiveState>) -> io::Result<Self> {
        Ok(Self {
            path,
            live,
            cache: ReadCache::default(),
            idle: Mutex::default(),
            readers: Readers::start()?,
            request_index: OnceCell::new(),
        })
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
        lane: Lane,
        read: impl FnOnce(&Self, &Connection) -> Result<T, JournalError> + Send + 'static,
    ) -> Result<T, JournalError> {
        let pool = Arc::clone(self);
        let read = self.readers.run(lane, move || pool.read(read));
        // It does not panic, so there is a result.
        read.await.unwrap_or(Err(JournalError::Closed))
    }

    /// The state of the index of the request ids.
    pub(super) async fn request_index(self: &Arc<Self>) -> RequestIndex {
        let check = || {
            self.read_long(Lane::Query, |_, connection| {
                Ok(RequestIndex::check(connection))
            })
        };
        let checked = self.request_index.get_or_try_init(check).await;
        // One that cannot be checked is not relied on.
        *checked.unwrap_or(&RequestIndex::Damaged)
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
