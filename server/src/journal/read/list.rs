//! Pages of tasks: live ones first, then newest first, in the order of the first page's moment.
//!
//! A list has two phases. The first has the tasks that were live at the first page's revision, the
//! second those that had ended by then. The phase of a task never changes, and neither does its place
//! in it. So a task that ends between two pages is still listed in the first phase, and not again in
//! the second; a task that is created meanwhile is in neither.

use std::{cmp::Reverse, error::Error, sync::Arc};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{
    Lane, LiveState, ReadPool, SizedEvent,
    finished::{self, Found, Slice},
    live_state::{LiveQuery, LiveTask},
};
use crate::{
    journal::{JournalError, RecordError},
    task::{Filter, IdKey, Placement, Revision, Seq, State, Task},
};

/// Bound of a page, as encoded: half of what a gRPC client accepts by default.
const PAGE_BYTES: usize = 2 << 20;

/// Maximum number of finished tasks that are read for one page.
pub(in crate::journal) const SCAN: usize = 1000;

/// A page of this size is read in about the time that it takes to wake another thread.
const SHORT_PAGE: usize = 100;

/// Selects the tasks to list.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListQuery {
    /// Its states are those at the time of the page.
    pub(crate) filter: Filter,
    /// Includes tasks that were finished at the first page; ignored if the filter has states.
    pub(crate) include_finished: bool,
    /// Includes tasks that finished in the foreground, which are hidden otherwise unless named by id.
    pub(crate) include_finished_foreground: bool,
    /// At most this many tasks, and at least one; fewer if the page would become too large.
    pub(crate) page_size: usize,
    /// The end of the page before; the rest of the query must be the same as for that page.
    pub(crate) position: Option<Position>,
}

/// One page of a list.
#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Live ones first, then newest first.
    pub(crate) tasks: Vec<Arc<Task>>,
    /// The position of the next page; none after the last page.
    pub(crate) next: Option<Position>,
    /// The revision at which this page was true.
    pub(crate) revision: Revision,
}

/// A place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// The head at the first page.
    since: Revision,
    phase: Phase,
    below: Seq,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Phase {
    Live,
    Finished,
}

/// A task at its place in the list.
#[derive(Debug)]
struct Listed {
    phase: Phase,
    seq: Seq,
    /// The task and its encoded size; none if it cannot be read.
    record: Option<(Arc<Task>, usize)>,
}

/// The page that is being made.
#[derive(Debug)]
struct Listing {
    key: IdKey,
    query: ListQuery,
    /// The head at the first page.
    since: Revision,
    /// The head at this page.
    now: Revision,
    /// The live tasks that match, newest first.
    live: Vec<LiveTask>,
}

/// Reads the page that a query asks for.
pub(super) async fn page(
    pool: &Arc<ReadPool>,
    live: &LiveState,
    key: IdKey,
    query: ListQuery,
) -> Result<Page, JournalError> {
    let short = query.limit() <= SHORT_PAGE;
    let mut listing = Listing::begin(live, key, query);
    if listing.is_in_memory() {
        let live = std::mem::take(&mut listing.live);
        return listing.fill(live.into_iter().map(|live| Ok(Listed::live(live))));
    }
    let complete =
        move |pool: &ReadPool, connection: &Connection| listing.complete(pool, connection);
    if short {
        pool.read(complete)
    } else {
        pool.read_long(Lane::Query, complete).await
    }
}

impl Listing {
    fn begin(state: &LiveState, key: IdKey, query: ListQuery) -> Self {
        let mut live = LiveQuery {
            filter: &query.filter,
            created_by: query.position.map(|position| position.since),
            below: query.position.map(|position| position.below),
            limit: query.limit() + 1,
        };
        if query.phase() == Phase::Finished {
            live.limit = 0;
        }
        let (now, live) = state.list(&live);
        let since = query.position.map_or(now, |position| position.since);
        Self {
            key,
            query,
            since,
            now,
            live,
        }
    }

    /// Reports whether this page needs no finished task.
    fn is_in_memory(&self) -> bool {
        let full = self.live.len() > self.query.limit();
        let first = self.query.position.is_none();
        first && (full || !self.query.wants_finished())
    }

    /// Adds the finished tasks. The file's snapshot is no older than `now`, and nothing later than `now`
    /// is asked for: so memory and file agree.
    fn complete(mut self, pool: &ReadPool, connection: &Connection) -> Result<Page, JournalError> {
        let below = self.query.position.map(|position| position.below);
        let phase = self.query.phase();
        let live = std::mem::take(&mut self.live);
        let mut sources: Vec<Source> = live.into_iter().map(Source::Memory).collect();
        if phase == Phase::Live && self.since < self.now {
            let slice = Slice::EndedBetween(self.since, self.now);
            // Some of them may not match, so the first few are not enough. No more are read than
            // have ended since the first page.
            let has_ids = !self.query.filter.ids.is_empty();
            let limit = match has_ids || self.query.filter.has_record_fields() {
                true => usize::MAX,
                false => self.query.limit() + 1,
            };
            let filter = &self.query.filter;
            let found = finished::find(connection, self.key, filter, slice, below, limit)?;
            sources.extend(
                found
                    .into_iter()
                    .map(|found| Source::Disk(Phase::Live, found)),
            );
            sources.sort_by_key(|source| Reverse(source.seq()));
        }
        let below = below.filter(|_| phase == Phase::Finished);
        let mut filling = Filling::new(self);
        for source in sources {
            filling.add(source.read(pool, connection)?);
            if filling.is_full() {
                return Ok(filling.page);
            }
        }
        if filling.query.wants_finished() {
            filling.add_finished(pool, connection, below)?;
        }
        Ok(filling.page)
    }

    fn fill(
        self,
        listed: impl Iterator<Item = Result<Listed, JournalError>>,
    ) -> Result<Page, JournalError> {
        let mut filling = Filling::new(self);
        for listed in listed {
            filling.add(listed?);
            if filling.is_full() {
                break;
            }
        }
        Ok(filling.page)
    }
}

/// A page to which tasks are added in the order of the list.
#[derive(Debug)]
struct Filling {
    key: IdKey,
    query: ListQuery,
    since: Revision,
    page: Page,
    /// The position of the latest task that was looked at.
    last: Option<Position>,
    count: usize,
    bytes: usize,
}

impl Filling {
    fn new(listing: Listing) -> Self {
        let page = Page {
            tasks: Vec::new(),
            next: None,
            revision: listing.now,
        };
        Self {
            key: listing.key,
            query: listing.query,
            since: listing.since,
            page,
            last: None,
            count: 0,
            bytes: 0,
        }
    }

    /// Adds a task if it belongs to the list. The first that does not fit shows that there is a next
    /// page; one fits in any case.
    fn add(&mut self, listed: Listed) {
        let Listed { phase, seq, record } = listed;
        let position = Position {
            since: self.since,
            phase,
            below: seq,
        };
        let wanted = |(task, _): &(Arc<Task>, usize)| self.query.wants(phase, task);
        if record.as_ref().is_some_and(|record| !wanted(record)) {
            self.last = Some(position);
            return;
        }
        let size = record.as_ref().map_or(0, |(_, size)| *size);
        let is_too_large = self.bytes > 0 && self.bytes + size > PAGE_BYTES;
        if self.count == self.query.limit() || is_too_large {
            self.page.next = self.last;
            return;
        }
        self.count += 1;
        self.bytes += size;
        self.last = Some(position);
        self.page.tasks.extend(record.map(|(task, _)| task));
    }

    fn is_full(&self) -> bool {
        self.page.next.is_some()
    }

    /// Adds tasks that were finished at the first page. It looks at [`SCAN`] tasks at most: if too few
    /// of them match, the page is short and the next one continues.
    fn add_finished(
        &mut self,
        pool: &ReadPool,
        connection: &Connection,
        mut below: Option<Seq>,
    ) -> Result<(), JournalError> {
        let slice = Slice::EndedBy(self.since);
        let mut scanned = 0;
        loop {
            let rest = self.query.limit() + 1 - self.count;
            let filter = &self.query.filter;
            let found = finished::find(connection, self.key, filter, slice, below, rest)?;
            let is_last = found.len() < rest;
            for found in found {
                below = Some(found.seq);
                scanned += 1;
                self.add(Source::Disk(Phase::Finished, found).read(pool, connection)?);
                if self.is_full() {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            if scanned >= SCAN.max(self.query.limit()) {
                self.page.next = self.last;
                return Ok(());
            }
        }
    }
}

/// The source of a listed task.
#[derive(Debug)]
enum Source {
    Memory(LiveTask),
    Disk(Phase, Found),
}

impl Source {
    fn seq(&self) -> Seq {
        match self {
            Self::Memory(live) => live.task.seq,
            Self::Disk(_, found) => found.seq,
        }
    }

    fn read(self, pool: &ReadPool, connection: &Connection) -> Result<Listed, JournalError> {
        let (phase, Found { seq, latest }) = match self {
            Self::Memory(live) => return Ok(Listed::live(live)),
            Self::Disk(phase, found) => (phase, found),
        };
        let of_the_task = |record: SizedEvent| match record.event.task.seq == seq {
            true => Ok(record),
            false => Err(JournalError::Damaged {
                revision: latest,
                source: RecordError::OfAnotherTask,
            }),
        };
        let record = match pool.event(connection, latest).and_then(of_the_task) {
            Ok(record) => Some((Arc::clone(&record.event.task), record.bytes)),
            Err(JournalError::Damaged { revision, source }) => {
                let error: &dyn Error = &source;
                tracing::error!(
                    revision = revision.0,
                    error,
                    "a task cannot be listed: its record is damaged"
                );
                None
            }
            Err(error) => return Err(error),
        };
        Ok(Listed { phase, seq, record })
    }
}

impl Listed {
    fn live(live: LiveTask) -> Self {
        let LiveTask { task, bytes, .. } = live;
        Self {
            phase: Phase::Live,
            seq: task.seq,
            record: Some((task, bytes)),
        }
    }
}

impl ListQuery {
    /// Leaves room for one more, which means a next page.
    fn limit(&self) -> usize {
        self.page_size.clamp(1, usize::MAX - 1)
    }

    fn phase(&self) -> Phase {
        self.position.map_or(Phase::Live, |position| position.phase)
    }

    /// Reports whether a task meets the conditions for which the journal has no column.
    fn wants(&self, phase: Phase, task: &Task) -> bool {
        let is_shown = match phase {
            Phase::Live => true,
            Phase::Finished => {
                self.include_finished_foreground
                    || !self.filter.ids.is_empty()
                    || task.placement() == Placement::Background
            }
        };
        is_shown && self.filter.has_id_of(task) && self.filter.matches_record(task)
    }

    fn wants_finished(&self) -> bool {
        if self.filter.states.is_empty() {
            return self.include_finished;
        }
        self.filter
            .states
            .iter()
            .any(|state| matches!(state, State::Ended(_)))
    }
}
