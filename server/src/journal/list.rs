//! Pages of tasks: live ones first, then newest first, in the order of the first page's moment.
//!
//! A list is made of two phases. The first gives the tasks that were live at the first page's
//! revision, the second those that had ended by then; which of the two a task belongs to never
//! changes, and neither does its place. So a task that ends between two pages is still met in the
//! first phase, and not again in the second; one that is created is in neither.

use std::{cmp::Reverse, error::Error, sync::Arc};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};

use super::{
    JournalError,
    archive::Archive,
    finished::{self, Found, Slice},
    present::{LiveQuery, LiveTask, Present},
};
use crate::task::{Filter, Placement, Revision, Seq, State, Task};

/// What a page may hold, as encoded: half of what a gRPC client takes unless told otherwise.
const PAGE_BYTES: usize = 2 << 20;

/// Maximum number of finished tasks that are read for one page.
pub(super) const SCAN: usize = 1000;

/// How many tasks are read sooner than another thread is woken, or nearly.
const SHORT_PAGE: usize = 100;

/// Which tasks to list.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// Which ones; with states, those that are in one of them when their page is made.
    pub filter: Filter,
    /// Those that were finished at the first page, too; where the filter has states, they decide.
    pub include_finished: bool,
    /// Tasks that finished in the foreground, too, which are otherwise hidden unless named by id.
    pub include_finished_foreground: bool,
    /// At most this many, and at least one; fewer where they would make the page too large.
    pub page_size: usize,
    /// Where the page before ended; the rest of the query is to be what it was there.
    pub position: Option<Position>,
}

/// Some tasks of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// Live ones first, then newest first.
    pub tasks: Vec<Arc<Task>>,
    /// Where the next page begins; none after the last one.
    pub next: Option<Position>,
    /// The revision at which this page was true.
    pub revision: Revision,
}

/// A place in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
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
    /// None: it cannot be read any more.
    record: Option<(Arc<Task>, usize)>,
}

/// The page that is being made.
#[derive(Debug)]
struct Listing {
    query: ListQuery,
    /// The head at the first page.
    since: Revision,
    /// The head at this page.
    now: Revision,
    /// What was found in memory, newest first.
    live: Vec<LiveTask>,
}

/// The page that a query asks for.
pub(super) async fn page(
    archive: &Arc<Archive>,
    present: &Present,
    query: ListQuery,
) -> Result<Page, JournalError> {
    let short = query.limit() <= SHORT_PAGE;
    let mut listing = Listing::begin(present, query);
    if listing.is_in_memory() {
        let live = std::mem::take(&mut listing.live);
        return listing.fill(live.into_iter().map(|live| Ok(Listed::live(live))));
    }
    let complete =
        move |archive: &Archive, connection: &Connection| listing.complete(archive, connection);
    if short {
        archive.read(complete)
    } else {
        archive.read_long(complete).await
    }
}

impl Listing {
    fn begin(present: &Present, query: ListQuery) -> Self {
        let mut live = LiveQuery {
            filter: &query.filter,
            created_by: query.position.map(|position| position.since),
            below: query.position.map(|position| position.below),
            limit: query.limit() + 1,
        };
        if query.phase() == Phase::Finished {
            live.limit = 0;
        }
        let (now, live) = present.list(&live);
        let since = query.position.map_or(now, |position| position.since);
        Self {
            query,
            since,
            now,
            live,
        }
    }

    /// Whether this page needs none of the finished tasks.
    fn is_in_memory(&self) -> bool {
        let full = self.live.len() > self.query.limit();
        let first = self.query.position.is_none();
        first && (full || !self.query.wants_finished())
    }

    /// Takes from the disk what memory does not have. Its snapshot is no older than `now`, and
    /// nothing later than that is asked for: so both tell of the same moment.
    fn complete(
        mut self,
        archive: &Archive,
        connection: &Connection,
    ) -> Result<Page, JournalError> {
        let below = self.query.position.map(|position| position.below);
        let phase = self.query.phase();
        let live = std::mem::take(&mut self.live);
        let mut places: Vec<Place> = live.into_iter().map(Place::Memory).collect();
        if phase == Phase::Live && self.since < self.now {
            let slice = Slice::EndedBetween(self.since, self.now);
            // Some of them may not match, so the first few are not enough. No more are read than
            // have ended since the first page.
            let limit = match self.query.filter.has_record_fields() {
                true => usize::MAX,
                false => self.query.limit() + 1,
            };
            let found = finished::find(connection, &self.query.filter, slice, below, limit)?;
            places.extend(
                found
                    .into_iter()
                    .map(|found| Place::Disk(Phase::Live, found)),
            );
            places.sort_by_key(|place| Reverse(place.seq()));
        }
        let below = below.filter(|_| phase == Phase::Finished);
        let mut filling = Filling::new(self);
        for place in places {
            filling.add(place.read(archive, connection)?);
            if filling.is_full() {
                return Ok(filling.page);
            }
        }
        if filling.query.wants_finished() {
            filling.add_finished(archive, connection, below)?;
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
        archive: &Archive,
        connection: &Connection,
        mut below: Option<Seq>,
    ) -> Result<(), JournalError> {
        let slice = Slice::EndedBy(self.since);
        let mut scanned = 0;
        loop {
            let rest = self.query.limit() + 1 - self.count;
            let found = finished::find(connection, &self.query.filter, slice, below, rest)?;
            let is_last = found.len() < rest;
            for found in found {
                below = Some(found.seq);
                scanned += 1;
                self.add(Place::Disk(Phase::Finished, found).read(archive, connection)?);
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

/// Where a listed task is.
#[derive(Debug)]
enum Place {
    Memory(LiveTask),
    Disk(Phase, Found),
}

impl Place {
    fn seq(&self) -> Seq {
        match self {
            Self::Memory(live) => live.task.seq,
            Self::Disk(_, found) => found.seq,
        }
    }

    fn read(self, archive: &Archive, connection: &Connection) -> Result<Listed, JournalError> {
        let (phase, Found { seq, latest }) = match self {
            Self::Memory(live) => return Ok(Listed::live(live)),
            Self::Disk(phase, found) => (phase, found),
        };
        let record = match archive.event(connection, latest) {
            Ok(record) => Some((Arc::clone(&record.event.task), record.bytes)),
            Err(JournalError::Damaged { revision, source }) => {
                let error: &dyn Error = &source;
                tracing::error!(revision = revision.0, error, "a task cannot be listed");
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
    /// Leaves room for the one that tells of a next page.
    fn limit(&self) -> usize {
        self.page_size.clamp(1, usize::MAX - 1)
    }

    fn phase(&self) -> Phase {
        self.position.map_or(Phase::Live, |position| position.phase)
    }

    /// The conditions for which the journal has no column.
    fn wants(&self, phase: Phase, task: &Task) -> bool {
        let is_shown = match phase {
            Phase::Live => true,
            Phase::Finished => {
                self.include_finished_foreground
                    || !self.filter.ids.is_empty()
                    || task.placement() == Placement::Background
            }
        };
        is_shown && self.filter.matches_record(task)
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
