//! WatchEvents: a cursor over the journal for each watcher.
//!
//! A watcher is a revision. It wakes when the head passes it, reads the events in between, and sends
//! them as fast as its client reads. A client that stops reading costs the few messages that were read
//! ahead. The stream ends only if the server shuts down or the journal cannot be read. It may also make its
//! client an owner of a session, for as long as it lasts.

use std::{collections::VecDeque, sync::Arc, time::Duration, vec};

use heeler_proto::{
    Encoded,
    v1::{self, watch_events_response::Item},
};
use prost::Message as _;
use tokio::{sync::watch, task::yield_now};

use super::bookmarks::{self, Bookmarks};
use crate::{
    journal::Journal,
    output::summary::SUMMARY_BYTES,
    service::{
        Closing, Reader, Service,
        transport::Call,
        wire::{
            check,
            encodings::{self, Encodings},
            filter,
            refusal::Refusal,
            stream::{Messages, Source},
        },
    },
    supervisor::{ExcerptKind, LINE_BYTES, SessionOwner, Supervisor, TAIL_BYTES},
    task::{Event, EventKind, Fact, FactKind, Filter, Revision, Rights, Task},
};

/// Events that are read at a time.
const BATCH: usize = 256;
/// Bytes of messages that are prepared at a time: enough to keep a connection busy.
const AHEAD: usize = 64 << 10;
/// The expected size of an event that was read and not sent.
const EVENT_BYTES: usize = 1024;

/// The memory for messages that the server itself has not taken.
const OWN_MEMORY: usize = 1 << 20;
/// The reattach window of a session's owner that names none.
const DEFAULT_REATTACH_WINDOW: Duration = Duration::from_secs(10);

type Message = Encoded<v1::WatchEventsResponse>;

/// One watcher.
#[derive(Debug)]
pub(crate) struct Watcher {
    supervisor: Supervisor,
    journal: Journal,
    encodings: Arc<Encodings>,
    filter: Filter,
    kinds: Vec<FactKind>,
    /// Ends come with a summary.
    summaries: bool,
    /// The initial state, until it is sent.
    initial: Option<vec::IntoIter<Arc<Task>>>,
    cursor: Revision,
    head: watch::Receiver<Revision>,
    /// Events that were read and not sent, beginning right after the cursor.
    unsent: VecDeque<Fact>,
    bookmarks: Bookmarks,
    closing: Closing,
    /// The session that the client owns, until the stream is dropped.
    owner: Option<SessionOwner>,
    call: Call,
    unread: Unread,
    reader: Reader,
}

impl Drop for Watcher {
    /// A client has not left if the server ends its stream.
    fn drop(&mut self) {
        if let Some(owner) = self.owner.as_mut().filter(|_| self.closing.has_begun()) {
            owner.leave_to_next_server();
        }
    }
}

/// The memory that a watcher has for messages that its client has not read.
#[derive(Debug)]
struct Unread {
    bytes: usize,
    pace: Pace,
}

/// The number of messages that are prepared at a time.
#[derive(Debug, Clone, Copy)]
enum Pace {
    Batches,
    /// The client has its share of unread messages: it gets one at a time.
    Single,
}

impl Pace {
    fn of(has_room: bool) -> Self {
        match has_room {
            true => Self::Batches,
            false => Self::Single,
        }
    }

    /// Bytes of messages that are prepared at a time.
    fn ahead(self) -> usize {
        match self {
            Self::Batches => AHEAD,
            Self::Single => 1,
        }
    }

    /// Events that are read at a time.
    fn batch(self) -> usize {
        match self {
            Self::Batches => BATCH,
            Self::Single => 1,
        }
    }
}

pub(super) async fn watch_events(
    service: &Service,
    request: v1::WatchEventsRequest,
    call: Call,
) -> Result<Messages<Watcher>, Refusal> {
    watcher(service, request, call).await.map(Messages::of)
}

/// The events of these types after a revision, for the server itself: an end that it reads is not delivered.
pub(in crate::service) async fn events_after(
    service: &Service,
    after: Revision,
    types: Vec<i32>,
) -> Result<Messages<Watcher>, Refusal> {
    let request = v1::WatchEventsRequest {
        after_revision: Some(after.0),
        types,
        ..Default::default()
    };
    let service = service.observing();
    let watcher = watcher(&service, request, Call::own(OWN_MEMORY));
    watcher.await.map(Messages::of)
}

async fn watcher(
    service: &Service,
    request: v1::WatchEventsRequest,
    call: Call,
) -> Result<Watcher, Refusal> {
    let journal = service.journal.clone();
    let epoch = journal.epoch().to_string();
    if !request.epoch.is_empty() && request.epoch != epoch {
        return Err(Refusal::epoch_mismatch(&request.epoch, epoch));
    }
    let filter = filter::reading(request.filter)?;
    let filter = filter::without_port(filter, "is not part of an event: use List")?;
    let kinds = filter::event_kinds(&request.types, &filter)?;
    if kinds.contains(&FactKind::SessionIdle) {
        check_sees_sessions(service)?;
    }
    let filter = service.seen(filter);
    let bookmark_interval = bookmarks::interval(request.bookmark_interval)?;
    let owned = request.own_session.map(ownership).transpose()?;
    let (initial, cursor) = match (request.initial_state, request.after_revision) {
        (true, Some(_)) => {
            return Err(Refusal::field(
                "after_revision",
                "cannot be combined with initial_state",
            ));
        }
        (true, None) => journal.snapshot(&filter),
        (false, Some(after)) => {
            // A revision out of range is refused before the stream begins.
            journal.facts_after(Revision(after), 1).await?;
            (Vec::new(), Revision(after))
        }
        (false, None) => (Vec::new(), journal.head()),
    };
    let owner = match owned {
        None => None,
        Some(owned) => Some(own_session(service, owned).await?),
    };
    Ok(Watcher {
        reader: service.reader,
        head: journal.watch(),
        supervisor: service.supervisor.clone(),
        journal,
        encodings: Arc::clone(&service.encodings),
        filter,
        kinds,
        summaries: request.summaries,
        initial: Some(initial.into_iter()),
        cursor,
        unsent: VecDeque::new(),
        bookmarks: Bookmarks::new(bookmark_interval),
        closing: service.closing.clone(),
        owner,
        unread: Unread {
            bytes: 0,
            pace: Pace::of(call.hold(0)),
        },
        call,
    })
}

/// The session and the reattach window that a request names.
fn ownership(owned: v1::SessionOwnership) -> Result<(String, Duration), Refusal> {
    let field = "own_session.session_id";
    let session_id = check::optional_text(field, owned.session_id, check::SHORT_TEXT)?;
    let session_id = session_id.ok_or_else(|| Refusal::field(field, "is required"))?;
    let window = check::timeout("own_session.reattach_window", owned.reattach_window)?;
    Ok((session_id, window.unwrap_or(DEFAULT_REATTACH_WINDOW)))
}

/// Checks that the caller may know of a session as a whole, which has tasks that a caller inside of a task does
/// not see.
fn check_sees_sessions(service: &Service) -> Result<(), Refusal> {
    match service.authority.bound() {
        None => Ok(()),
        Some(own) => {
            let rights = service.authority.rights();
            Err(Refusal::rights_insufficient(own, rights, Rights::All))
        }
    }
}

/// Makes the client an owner. The end of a session reaches tasks that a caller inside of a task does not see.
async fn own_session(
    service: &Service,
    (session_id, window): (String, Duration),
) -> Result<SessionOwner, Refusal> {
    check_sees_sessions(service)?;
    Ok(service.supervisor.own_session(session_id, window).await?)
}

impl Source for Watcher {
    type Message = Message;

    async fn next(&mut self) -> Result<Vec<Message>, Refusal> {
        match self.unread.pace {
            Pace::Batches => {}
            // tonic gathers messages as long as there are more: here it must send the one it has.
            Pace::Single => yield_now().await,
        }
        loop {
            // The ends of tasks that a shutdown stopped are sent before the stream ends.
            if self.closing.has_begun() && (self.initial.is_some() || self.has_sent_all()) {
                return Err(Refusal::shutting_down());
            }
            if self.initial.is_some() {
                let tasks = self.initial_state();
                self.count(&tasks);
                return Ok(tasks);
            }
            self.head.mark_unchanged();
            self.read().await?;
            let events = self.wanted_events().await;
            if !events.is_empty() {
                self.bookmarks.postpone();
                self.count(&events);
                return Ok(events);
            }
            if self.bookmarks.is_due() {
                return Ok(vec![self.bookmark()]);
            }
            if !self.has_sent_all() {
                continue;
            }
            if self.unread.bytes > EVENT_BYTES {
                self.count(&[]);
            }
            tokio::select! {
                _ = self.head.changed() => {}
                () = self.bookmarks.may_be_due() => {}
                () = self.closing.begun() => {}
            }
        }
    }
}

impl Watcher {
    fn has_sent_all(&self) -> bool {
        self.cursor >= self.journal.head()
    }

    /// Counts the messages that the client is about to get, and what was read for later ones.
    fn count(&mut self, messages: &[Message]) {
        let prepared: usize = messages.iter().map(Message::encoded_len).sum();
        self.unread.bytes = prepared + self.unsent.len() * EVENT_BYTES;
        self.unread.pace = Pace::of(self.call.hold(self.unread.bytes));
    }

    /// Returns a part of the initial state; a bookmark follows the last part.
    fn initial_state(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        let mut bytes = 0;
        while bytes < self.unread.pace.ahead() {
            let Some(task) = self.initial.as_mut().and_then(Iterator::next) else {
                self.initial = None;
                messages.push(self.bookmark());
                break;
            };
            let task = self.encodings.task(&task);
            bytes += task.len();
            messages.push(Encoded::from_bytes(task));
        }
        messages
    }

    async fn read(&mut self) -> Result<(), Refusal> {
        if self.unsent.is_empty() {
            let facts = self
                .journal
                .facts_after(self.cursor, self.unread.pace.batch())
                .await?;
            self.unsent = facts.into();
        }
        Ok(())
    }

    /// Returns as many events as are prepared at a time.
    async fn wanted_events(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        // The excerpts, each with the number of its event.
        let (mut events, mut excerpts) = (Vec::new(), Vec::new());
        let mut bytes = 0;
        while bytes < self.unread.pace.ahead()
            && let Some(fact) = self.unsent.pop_front()
        {
            self.cursor = fact.revision();
            if self.wants(&fact) {
                if let Some(event) = fact.event() {
                    match self.reader {
                        Reader::Client => self.journal.note_delivered(&event.task),
                        Reader::Observer => {}
                    }
                    for kind in self.excerpts_of(event) {
                        bytes += excerpt_bytes(kind, &event.task);
                        events.push(messages.len());
                        excerpts.push((Arc::clone(&event.task), kind));
                    }
                }
                let message = match self.filter.scope {
                    None => self.encodings.event(&fact),
                    // The activity of a session tells of tasks that the caller must not see.
                    Some(_) => self.encodings.event_without_activity(&fact),
                };
                bytes += message.encoded_len();
                messages.push(message);
            }
        }
        self.add_excerpts(&mut messages, events, excerpts).await;
        messages
    }

    /// The excerpts of output that the event is delivered with.
    fn excerpts_of(&self, event: &Event) -> Vec<ExcerptKind> {
        let mut kinds = Vec::new();
        if event.has_output_tail() {
            kinds.push(ExcerptKind::Tail);
        }
        match event.kind {
            EventKind::Ended => kinds.extend(self.summaries.then_some(ExcerptKind::Summary)),
            EventKind::Matched => kinds.push(ExcerptKind::Match),
            EventKind::Created
            | EventKind::Admitted
            | EventKind::Started
            | EventKind::Restarting
            | EventKind::Restarted
            | EventKind::Stopping
            | EventKind::LeaderExited
            | EventKind::Detached
            | EventKind::Stale
            | EventKind::Active
            | EventKind::KillOverdue
            | EventKind::OutputLimit
            | EventKind::Ready
            | EventKind::NotReady
            | EventKind::NeedsInput
            | EventKind::Progress
            | EventKind::Updated
            | EventKind::Removed => {}
        }
        kinds
    }

    async fn add_excerpts(
        &self,
        messages: &mut [Message],
        events: Vec<usize>,
        wanted: Vec<(Arc<Task>, ExcerptKind)>,
    ) {
        if wanted.is_empty() {
            return;
        }
        let read = self.supervisor.excerpts(wanted.clone(), encodings::excerpt);
        for ((index, excerpt), (task, kind)) in events.into_iter().zip(read.await).zip(wanted) {
            let excerpt = match kind {
                // Its place and its number are told even if its text is gone.
                ExcerptKind::Match => {
                    Some(excerpt.unwrap_or_else(|| encodings::match_without_text(&task)))
                }
                ExcerptKind::Tail | ExcerptKind::Summary => excerpt,
            };
            if let Some(excerpt) = excerpt {
                messages[index] = encodings::with_excerpt(messages[index].clone(), &excerpt);
            }
        }
    }

    fn wants(&self, fact: &Fact) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&fact.kind())) && self.filter.admits(fact)
    }

    fn bookmark(&mut self) -> Message {
        self.bookmarks.postpone();
        let bookmark = v1::Bookmark {
            revision: self.cursor.0,
            epoch: self.journal.epoch().to_string(),
        };
        Encoded::new(&v1::WatchEventsResponse {
            item: Some(Item::Bookmark(bookmark)),
        })
    }
}

/// The expected size of an excerpt.
fn excerpt_bytes(kind: ExcerptKind, task: &Task) -> usize {
    match kind {
        ExcerptKind::Tail => TAIL_BYTES.min(task.output_bytes as usize),
        ExcerptKind::Summary => SUMMARY_BYTES,
        ExcerptKind::Match => {
            let lines = task.last_match.iter().flat_map(|matched| &matched.lines);
            let sizes = lines.map(|line| LINE_BYTES.min((line.end - line.offset) as usize));
            sizes.sum()
        }
    }
}
