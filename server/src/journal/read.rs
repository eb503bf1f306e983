//! The read path: live tasks and the newest events from memory, everything else from the file.
//!
//! ```text
//! live tasks, newest events <── LiveState <── writer, after each commit
//! finished tasks, old events <── ReadPool <── journal.db, through read-only connections
//! ```
//!
//! Readers never wait for the writer. A row that cannot be read costs itself: a reader that asks for it
//! gets an error that names it, and a list leaves it out.

mod cache;
mod events;
mod finished;
pub(super) mod list;
mod live_state;
mod lookup;
mod pool;
mod queues;
mod readers;
mod ring;
mod sized;
mod startup;
mod work;

use std::sync::{Arc, atomic::Ordering};

use tokio::sync::watch;

use self::{
    events::FactsAfter,
    finished::{Found, Slice},
    live_state::LiveQuery,
    lookup::FinishedTask,
};
use super::{Journal, JournalError, Memory, PriorRequest, ReadError};
use crate::task::{Event, Fact, Filter, Revision, Seq, SpawnRequest, Task, TaskId};

pub(super) use events::stored_event;
#[cfg(test)]
pub(super) use finished::{Search, Slice as SearchSlice};
pub(super) use live_state::LiveState;
pub(super) use lookup::{finished, of_task};
pub(super) use pool::ReadPool;
pub(super) use readers::Lane;
pub(super) use sized::{SizedEvent, SizedFact};
pub(super) use startup::{bounds, highest_seq, live_tasks};

pub(crate) use list::{ListQuery, Page, Position};
pub(crate) use live_state::{LiveSession, SessionQuery};
pub(crate) use work::{MessageEntry, WorkRecord};

impl Journal {
    /// The latest revision; 0 before the first.
    pub(crate) fn head(&self) -> Revision {
        self.shared.live.head()
    }

    /// The first revision whose event can still be read; 1 if none was pruned.
    pub(crate) fn oldest(&self) -> Revision {
        self.shared.totals.oldest()
    }

    /// The head, and a wake-up whenever it moves.
    pub(crate) fn watch(&self) -> watch::Receiver<Revision> {
        self.shared.live.watch()
    }

    /// Returns the facts after a revision, in order and without a gap: at least one unless the revision
    /// is the head, at most `limit`.
    ///
    /// A damaged fact is an error if it is the first; to skip it, ask for the facts after it.
    pub(crate) async fn facts_after(
        &self,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Fact>, ReadError> {
        let (oldest, newest) = (self.oldest(), self.head());
        if after > newest || after.0 + 1 < oldest.0 {
            return Err(ReadError::OutOfRange { oldest, newest });
        }
        let limit = limit.max(1);
        if let Some(facts) = self.shared.live.after(after, limit) {
            return Ok(facts);
        }
        match events::facts_after(&self.shared.pool, after, limit).await? {
            FactsAfter::Facts(facts) => Ok(facts),
            FactsAfter::Pruned { oldest } => Err(ReadError::OutOfRange { oldest, newest }),
        }
    }

    /// The fact at a revision; none if there is none, or it was pruned.
    #[cfg(test)]
    pub(super) async fn fact_at(&self, revision: Revision) -> Result<Option<Fact>, JournalError> {
        if revision < self.oldest() || revision > self.head() {
            return Ok(None);
        }
        let read = |pool: &ReadPool, connection: &_| pool.fact(connection, revision);
        Ok(Some(self.shared.pool.read(read)?.fact))
    }

    /// A task, live or finished, in its latest state.
    pub(crate) async fn task(&self, id: &TaskId) -> Result<Option<Arc<Task>>, JournalError> {
        if let Some(live) = self.shared.live.task(id) {
            return Ok(Some(live.task));
        }
        let event = self.finished_event(id, |finished| finished.latest)?;
        Ok(event.map(|event| Arc::clone(&event.task)))
    }

    /// Those of the ids that belong to no task, live or finished.
    pub(crate) async fn unknown(
        &self,
        ids: Vec<TaskId>,
    ) -> Result<Vec<(TaskId, Memory)>, JournalError> {
        let key = self.id_key();
        let seqs = &self.shared.seqs;
        // The numbers between the recorded ones and the first new one are those of lost tasks.
        let lost = Seq(seqs.recorded)..Seq(seqs.first.load(Ordering::Relaxed));
        let next = Seq(seqs.next.load(Ordering::Relaxed));
        let had_a_task = move |seq: Seq| seq < next && !lost.contains(&seq);
        let read =
            move |pool: &ReadPool, connection: &_| pool.unknown(connection, ids, key, had_a_task);
        self.shared.pool.read_long(Lane::Query, read).await
    }

    /// The event with which a task's Spawn was answered: see [`PriorRequest::answer`].
    pub(crate) async fn first_answer(
        &self,
        id: &TaskId,
    ) -> Result<Option<Arc<Event>>, JournalError> {
        let Some(live) = self.shared.live.task(id) else {
            return self.finished_event(id, |finished| finished.answer);
        };
        let Some(revision) = live.answer() else {
            return Ok(None);
        };
        let read = |pool: &ReadPool, connection: &_| pool.event(connection, revision);
        Ok(Some(self.shared.pool.read(read)?.event))
    }

    fn finished_event(
        &self,
        id: &TaskId,
        which: fn(FinishedTask) -> Revision,
    ) -> Result<Option<Arc<Event>>, JournalError> {
        let key = self.id_key();
        self.shared.pool.read(|pool, connection| {
            let Some(finished) = lookup::finished(connection, key, id)? else {
                return Ok(None);
            };
            let event = pool.event(connection, which(finished))?;
            Ok(Some(lookup::of_task(event, id)?.event))
        })
    }

    /// The earlier request with the id of this one, as long as its task exists.
    pub(crate) async fn find_request(
        &self,
        request: &SpawnRequest,
    ) -> Result<Option<PriorRequest>, JournalError> {
        let Some(request_id) = &request.request_id else {
            return Ok(None);
        };
        let key = &self.shared.identity.request_key;
        let is_same = |digest: &[u8]| key.is_digest_of(digest, request);
        let pool = &self.shared.pool;
        let index = pool.request_index().await;
        pool.read(|pool, connection| pool.prior_request(connection, index, request_id, is_same))
    }

    /// The finished tasks that match and ended after one revision and before another, in the order of
    /// their ends; tasks with an unreadable record are left out.
    pub(crate) async fn ended_within(
        &self,
        after: Revision,
        before: Revision,
        filter: Filter,
    ) -> Result<Vec<Arc<Task>>, JournalError> {
        let key = self.id_key();
        let read = move |pool: &ReadPool, connection: &_| {
            let slice = Slice::Within(after, before);
            let found = finished::find(connection, key, &filter, slice, None, usize::MAX)?;
            let event = |found: Found| {
                let event = pool.event(connection, found.latest).ok()?;
                filter.has_id_of(&event.event.task).then_some(event)
            };
            let mut ended: Vec<_> = found.into_iter().filter_map(event).collect();
            ended.sort_by_key(|sized| sized.event.revision);
            let task = |sized: SizedEvent| Arc::clone(&sized.event.task);
            Ok(ended.into_iter().map(task).collect())
        };
        self.shared.pool.read_long(Lane::Query, read).await
    }

    /// One page of a list.
    pub(crate) async fn list(&self, query: ListQuery) -> Result<Page, JournalError> {
        list::page(&self.shared.pool, &self.shared.live, self.id_key(), query).await
    }

    /// The sessions of live tasks, by id, and the revision at which this was true.
    pub(crate) fn sessions(&self, query: &SessionQuery) -> (Revision, Vec<LiveSession>) {
        self.shared.live.sessions(query)
    }

    /// Every live task that matches, newest first, and the revision at which this was true: the events
    /// after it follow. Unlike a page, it is never cut.
    pub(crate) fn snapshot(&self, filter: &Filter) -> (Vec<Arc<Task>>, Revision) {
        let everything = LiveQuery {
            filter,
            created_by: None,
            below: None,
            limit: usize::MAX,
        };
        let (revision, live) = self.shared.live.list(&everything);
        (live.into_iter().map(|live| live.task).collect(), revision)
    }

    /// Every live task, oldest first.
    pub(crate) async fn live(&self) -> Result<Vec<Arc<Task>>, JournalError> {
        Ok(self.shared.live.tasks())
    }
}
