//! FollowOutput: the output of many tasks in one stream.
//!
//! The stream is a cursor over the journal, from which it learns of tasks that begin and end, and a reader
//! of each task that it follows. Tasks with output to send take turns, a piece each. A client that stops
//! reading costs one piece, the places of its readers, and nothing that others need.
//!
//! ```text
//! journal ──> begins ──> task ──> output, output, ... ──┐
//!         └─> ends ──────────────> all output sent? ────┴──> ended
//! ```

mod initial;
mod tasks;

use std::{collections::VecDeque, time::Duration};

use heeler_proto::v1::{self, follow_output_response::Item};
use prost::Message as _;
use tokio::{sync::watch, task::yield_now};

use super::{
    bookmarks::{self, Bookmarks},
    read_output,
};
use crate::{
    service::{
        Service,
        transport::Call,
        wire::{
            check, filter,
            output::{self, Selection, View},
            refusal::Refusal,
            stream::{Messages, Source},
            task,
        },
    },
    supervisor::OutputStart,
    task::{EventKind, Fact, Filter, Revision, Seq, TaskId},
};
use initial::Beginning;
use tasks::{FollowedTasks, Turn};

/// Events that are read at a time.
const BATCH: usize = 256;
/// Bytes that are read at a time: the memory that a client costs that has stopped reading.
const PIECE: usize = 32 * 1024;
/// The same for a client with too much unread already.
const SMALL_PIECE: usize = 4 * 1024;
/// Maximum number of cursors.
const CURSORS: usize = 10_000;

/// The checked request.
#[derive(Debug)]
pub(super) struct Request {
    filter: Filter,
    cursors: Vec<(TaskId, Option<u64>)>,
    options: Options,
    include_finished: bool,
    until: Until,
    after: Option<Revision>,
    bookmark_interval: Duration,
}

/// The way in which each task is read.
#[derive(Debug)]
struct Options {
    /// The start in tasks that are there when the stream begins.
    start: OutputStart,
    selection: Selection,
    view: View,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Forever,
    /// No task is followed any more, and none is left to begin.
    Finished,
}

/// The stream of one client.
#[derive(Debug)]
pub(crate) struct Follower {
    service: Service,
    filter: Filter,
    options: Options,
    until: Until,
    /// The tasks that are there when the stream begins, until they are sent.
    beginning: Option<VecDeque<Beginning>>,
    cursor: Revision,
    head: watch::Receiver<Revision>,
    /// Events that were read and not processed, beginning right after the cursor.
    unprocessed: VecDeque<Fact>,
    /// The first task that was created after the stream began.
    first_new: Option<Seq>,
    tasks: FollowedTasks,
    bookmarks: Bookmarks,
    call: Call,
    piece: usize,
    is_over: bool,
}

pub(super) async fn follow_output(
    service: &Service,
    request: v1::FollowOutputRequest,
    call: Call,
) -> Result<Messages<Follower>, Refusal> {
    let epoch = service.journal.epoch().to_string();
    if !request.epoch.is_empty() && request.epoch != epoch {
        return Err(Refusal::epoch_mismatch(&request.epoch, epoch));
    }
    let has_patterns = request
        .output_filter
        .as_ref()
        .is_some_and(output::has_patterns);
    let request = match has_patterns {
        true => {
            service
                .check_patterns(&call, move || check(request))
                .await?
        }
        false => check(request)?,
    };
    let request = Request {
        filter: service.seen(request.filter),
        ..request
    };
    if let Some(after) = request.after {
        // A revision out of range is refused before the stream begins.
        service.journal.facts_after(after, 1).await?;
    }
    let head = service.journal.watch();
    let (beginning, cursor) = initial::tasks(service, &request).await?;
    Ok(Messages::of(Follower {
        service: service.clone(),
        filter: request.filter,
        options: request.options,
        until: request.until,
        beginning: Some(beginning),
        cursor,
        head,
        unprocessed: VecDeque::new(),
        first_new: None,
        tasks: FollowedTasks::default(),
        bookmarks: Bookmarks::new(request.bookmark_interval),
        call,
        piece: PIECE,
        is_over: false,
    }))
}

pub(super) fn check(request: v1::FollowOutputRequest) -> Result<Request, Refusal> {
    use v1::follow_output_request::Start;
    let view = View::read("view", request.view)?;
    let selection = output::selection("output_filter", request.output_filter, view)?;
    let start = match request.start {
        None => OutputStart::Offset(0),
        Some(Start::TailBytes(bytes)) => OutputStart::TailBytes(bytes),
        Some(Start::TailLines(lines)) => read_output::tail_lines(lines, &selection)?,
        Some(Start::Since(time)) => OutputStart::Since(output::time("since", time)?),
    };
    if request.include_finished && request.after_revision.is_some() {
        return Err(Refusal::field(
            "include_finished",
            "cannot be combined with after_revision",
        ));
    }
    Ok(Request {
        filter: filter::without_port(
            filter::reading(request.filter)?,
            "is not part of an event: use List",
        )?,
        cursors: cursors(&request.cursors)?,
        options: Options {
            start,
            selection,
            view,
        },
        include_finished: request.include_finished,
        until: match check::enumerated("until", request.until)? {
            v1::FollowUntil::Unspecified | v1::FollowUntil::Forever => Until::Forever,
            v1::FollowUntil::Finished => Until::Finished,
        },
        after: request.after_revision.map(Revision),
        bookmark_interval: bookmarks::interval(request.bookmark_interval)?,
    })
}

fn cursors(cursors: &[v1::OutputCursor]) -> Result<Vec<(TaskId, Option<u64>)>, Refusal> {
    if cursors.len() > CURSORS {
        let problem = format!("has more than {CURSORS} cursors");
        return Err(Refusal::field("cursors", problem));
    }
    let read = |(at, cursor): (usize, &v1::OutputCursor)| {
        let field = format!("cursors[{at}].task_id");
        let id = match cursor.task_id.as_str() {
            "" => return Err(Refusal::field(field, "is required")),
            id => id.parse(),
        };
        let id = id.map_err(|error| {
            let problem = format!("is not a valid task id: {error}");
            Refusal::field(field, problem)
        })?;
        Ok((id, cursor.offset))
    };
    cursors.iter().enumerate().map(read).collect()
}

impl Source for Follower {
    type Message = v1::FollowOutputResponse;

    async fn next(&mut self) -> Result<Vec<v1::FollowOutputResponse>, Refusal> {
        if self.is_over {
            return Ok(Vec::new());
        }
        if self.piece == SMALL_PIECE {
            // tonic gathers messages as long as there are more: here it must send the one it has.
            yield_now().await;
        }
        let item = self.next_item().await?;
        self.is_over = matches!(item, Item::Finished(_));
        let message = v1::FollowOutputResponse {
            item: Some(item),
            revision: self.cursor.0,
        };
        self.bookmarks.postpone();
        self.piece = match self.call.hold(message.encoded_len()) {
            true => PIECE,
            false => SMALL_PIECE,
        };
        Ok(vec![message])
    }
}

impl Follower {
    async fn next_item(&mut self) -> Result<Item, Refusal> {
        loop {
            if let Some(item) = self.begin() {
                return Ok(item);
            }
            self.head.mark_unchanged();
            if let Some(item) = self.process_events().await? {
                return Ok(item);
            }
            if let Some(item) = self.take_turn().await? {
                return Ok(item);
            }
            if self.tasks.has_ready() || !self.has_processed_all() {
                continue;
            }
            if self.until == Until::Finished && self.tasks.is_empty() {
                return Ok(Item::Finished(v1::FollowFinished {}));
            }
            if self.service.closing.has_begun() {
                return Err(Refusal::shutting_down());
            }
            if self.bookmarks.is_due() {
                return Ok(self.bookmark());
            }
            self.call.hold(0);
            tokio::select! {
                _ = self.head.changed() => {}
                () = self.tasks.grown() => {}
                () = self.bookmarks.may_be_due() => {}
                () = self.service.closing.begun() => {}
            }
        }
    }

    /// The next task that was there when the stream began; a bookmark follows the last one.
    fn begin(&mut self) -> Option<Item> {
        let beginning = self.beginning.as_mut()?;
        match beginning.pop_front() {
            None => {
                self.beginning = None;
                Some(self.bookmark())
            }
            Some(Beginning::Gone(id)) => Some(gone(&id)),
            Some(Beginning::Task { task, start }) => {
                let item = Item::Task(task::show(&task));
                // An end after the cursor is told by its event.
                let is_ended = !task.is_live() && task.revision <= self.cursor;
                let reader = self.options.reader(task.id.clone(), start);
                self.tasks.add(reader, is_ended.then_some(task));
                Some(item)
            }
        }
    }

    /// Processes events until a task begins, or all that were read are processed.
    async fn process_events(&mut self) -> Result<Option<Item>, Refusal> {
        if self.unprocessed.is_empty() {
            let facts = self.service.journal.facts_after(self.cursor, BATCH).await?;
            self.unprocessed = facts.into();
        }
        while let Some(fact) = self.unprocessed.pop_front() {
            self.cursor = fact.revision();
            let Fact::Task(event) = fact else { continue };
            let task = &event.task;
            if event.kind == EventKind::Created {
                self.first_new.get_or_insert(task.seq);
            }
            let is_ended = event.kind == EventKind::Ended;
            if self.tasks.has(&task.id) {
                if is_ended {
                    self.tasks.end(task);
                }
            } else if event.kind != EventKind::Removed && self.filter.matches(task) {
                let is_new = self.first_new.is_some_and(|first| task.seq >= first);
                let start = match is_new {
                    true => OutputStart::Offset(0),
                    false => self.options.start,
                };
                let reader = self.options.reader(task.id.clone(), start);
                self.tasks.add(reader, is_ended.then(|| task.clone()));
                return Ok(Some(Item::Task(task::show(task))));
            }
        }
        Ok(None)
    }

    /// Reads a piece of the next task that may have output.
    async fn take_turn(&mut self) -> Result<Option<Item>, Refusal> {
        let (service, call) = (&self.service, &self.call);
        Ok(match self.tasks.turn(service, call, self.piece).await? {
            None => None,
            Some(Turn::Output(output)) => Some(Item::Output(output)),
            Some(Turn::Gone(id)) => Some(gone(&id)),
            Some(Turn::Ended(task)) => {
                self.service.note_delivered(&task);
                Some(Item::Ended(task::show(&task)))
            }
        })
    }

    fn has_processed_all(&self) -> bool {
        self.unprocessed.is_empty() && self.cursor >= self.service.journal.head()
    }

    fn bookmark(&self) -> Item {
        Item::Bookmark(v1::FollowBookmark {
            epoch: self.service.journal.epoch().to_string(),
        })
    }
}

fn gone(id: &TaskId) -> Item {
    Item::Gone(v1::TaskGone {
        task_id: id.to_string(),
    })
}
