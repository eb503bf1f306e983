//! WatchEvents: a cursor over the journal for each watcher.
//!
//! A watcher is a number. It is woken by a number, reads what it has not sent yet, and sends it as
//! fast as its client takes it; one that stops reading stops here, and costs what its channel holds.

use std::{sync::Arc, time::Duration};

use heeler_proto::v1::{self, watch_events_response::Item};
use tokio::{sync::mpsc, time::Instant};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Status};

use super::{Closing, Service, check, convert, layer::CallPermit, refusal::Refusal};
use crate::{
    journal::Journal,
    task::{Event, EventKind, Filter, Revision, Task},
};

/// Messages that wait for a client: enough to keep its connection busy.
const AHEAD: usize = 64;
/// Events that are read at once.
const BATCH: usize = 256;
const DEFAULT_BOOKMARK: Duration = Duration::from_secs(15);
const SHORTEST_BOOKMARK: Duration = Duration::from_millis(100);
/// Past this a bookmark never comes, and the timer's arithmetic stays sound.
const LONGEST_BOOKMARK: Duration = Duration::from_secs(24 * 3600);

/// How long a client may take, when the server closes, to read what was recorded before.
const LAST_EVENTS: Duration = Duration::from_secs(2);

type Sent = Result<v1::WatchEventsResponse, Status>;

/// One watcher.
struct Watcher {
    journal: Journal,
    filter: Filter,
    kinds: Vec<EventKind>,
    bookmark_every: Duration,
    cursor: Revision,
    client: mpsc::Sender<Sent>,
    closing: Closing,
    _permit: Option<CallPermit>,
}

/// The client has gone.
struct Gone;

pub(super) async fn watch_events(
    service: &Service,
    request: Request<v1::WatchEventsRequest>,
) -> Result<ReceiverStream<Sent>, Refusal> {
    let permit = request.extensions().get::<CallPermit>().cloned();
    let request = request.into_inner();
    let journal = service.supervisor.parts().journal.clone();
    let state_id = journal.state_id().to_string();
    if !request.state_id.is_empty() && request.state_id != state_id {
        return Err(Refusal::foreign_state(&request.state_id, state_id));
    }
    let filter = check::filter("filter", request.filter.unwrap_or_default())?;
    let kinds = check::event_kinds(request.types)?;
    let bookmark_every = bookmark_interval(request.bookmark_interval)?;
    let (initial, cursor) = match (request.initial_state, request.after_revision) {
        (true, Some(_)) => {
            return Err(Refusal::field(
                "after_revision",
                "does not go with initial_state",
            ));
        }
        (true, None) => journal.snapshot(&filter),
        (false, Some(after)) => {
            // Said at once rather than as the stream's first item.
            journal.events_after(Revision(after), 1).await?;
            (Vec::new(), Revision(after))
        }
        (false, None) => (Vec::new(), journal.head()),
    };
    let (client, stream) = mpsc::channel(AHEAD);
    let closing = service.closing.clone();
    let watcher = Watcher {
        journal,
        filter,
        kinds,
        bookmark_every,
        cursor,
        client,
        closing,
        _permit: permit,
    };
    tokio::spawn(watcher.run(initial));
    Ok(ReceiverStream::new(stream))
}

fn bookmark_interval(value: Option<prost_types::Duration>) -> Result<Duration, Refusal> {
    let Some(value) = value else {
        return Ok(DEFAULT_BOOKMARK);
    };
    let span = check::duration("bookmark_interval", value)?;
    if span < SHORTEST_BOOKMARK {
        return Err(Refusal::field(
            "bookmark_interval",
            "is shorter than 100 ms",
        ));
    }
    Ok(span.min(LONGEST_BOOKMARK))
}

fn refuse(client: &mpsc::Sender<Sent>) {
    let refusal = Refusal::not_serving("the server is shutting down");
    // A client that does not read will see the connection close instead.
    let _ = client.try_send(Err(refusal.into()));
}

impl Watcher {
    async fn run(mut self, initial: Vec<Arc<Task>>) {
        let closing = self.closing.clone();
        let client = self.client.clone();
        // Where its client has gone, that needs no word.
        tokio::select! {
            begun = self.begin(initial) => if begun.is_err() { return },
            () = closing.begun() => return refuse(&client),
        }
        tokio::select! {
            _ = self.follow() => return,
            () = closing.begun() => {}
        }
        // The ends of tasks that were stopped with the server come before the end of the stream.
        let _ = tokio::time::timeout(LAST_EVENTS, self.catch_up()).await;
        refuse(&client);
    }

    async fn begin(&mut self, initial: Vec<Arc<Task>>) -> Result<(), Gone> {
        for task in initial {
            self.send(Item::Initial(convert::task(&task))).await?;
        }
        self.bookmark().await
    }

    async fn catch_up(&mut self) -> Result<(), Gone> {
        while self.cursor < self.journal.head() {
            self.send_new_events().await?;
        }
        Ok(())
    }

    async fn follow(&mut self) -> Result<(), Gone> {
        let mut head = self.journal.watch();
        let mut bookmark_due = Instant::now() + self.bookmark_every;
        loop {
            head.mark_unchanged();
            if self.send_new_events().await? == Progress::Sent {
                bookmark_due = Instant::now() + self.bookmark_every;
            }
            if Instant::now() >= bookmark_due {
                self.bookmark().await?;
                bookmark_due = Instant::now() + self.bookmark_every;
            }
            if self.cursor < self.journal.head() {
                continue;
            }
            tokio::select! {
                _ = head.changed() => {}
                () = tokio::time::sleep_until(bookmark_due) => {}
                () = self.client.closed() => return Err(Gone),
            }
        }
    }

    async fn send_new_events(&mut self) -> Result<Progress, Gone> {
        let events = match self.journal.events_after(self.cursor, BATCH).await {
            Ok(events) => events,
            Err(error) => {
                let _ = self.client.send(Err(Refusal::from(error).into())).await;
                return Err(Gone);
            }
        };
        let mut progress = Progress::Silent;
        for event in events {
            if self.wants(&event) {
                self.send(Item::Event(convert::event(&event))).await?;
                progress = Progress::Sent;
            }
            self.cursor = event.revision;
        }
        Ok(progress)
    }

    fn wants(&self, event: &Event) -> bool {
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && self.filter.matches(&event.task)
    }

    async fn bookmark(&self) -> Result<(), Gone> {
        let bookmark = v1::Bookmark {
            revision: self.cursor.0,
            state_id: self.journal.state_id().to_string(),
        };
        self.send(Item::Bookmark(bookmark)).await
    }

    async fn send(&self, item: Item) -> Result<(), Gone> {
        let message = v1::WatchEventsResponse { item: Some(item) };
        self.client.send(Ok(message)).await.map_err(|_| Gone)
    }
}

#[derive(PartialEq, Eq)]
enum Progress {
    Sent,
    Silent,
}
