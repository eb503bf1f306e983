//! The event stream, read with a deadline.

use heeler_proto::v1::{
    BackgroundTask, Bookmark, TaskEvent, TaskEventType, WatchEventsResponse,
    watch_events_response::Item,
};
use tonic::{Status, Streaming};

use crate::within;

/// An open stream.
#[derive(Debug)]
pub struct Watch {
    stream: Streaming<WatchEventsResponse>,
}

impl Watch {
    pub(crate) fn new(stream: Streaming<WatchEventsResponse>) -> Self {
        Self { stream }
    }

    /// The next message, or how the stream broke.
    pub async fn try_next(&mut self) -> Result<Item, Status> {
        let message = within("a message of the stream", self.stream.message()).await?;
        let end = || Status::unavailable("the stream has ended");
        message
            .ok_or_else(end)
            .map(|message| message.item.expect("an item"))
    }

    /// The next message.
    pub async fn next(&mut self) -> Item {
        self.try_next().await.expect("a stream that goes on")
    }

    /// The next event; bookmarks are passed over.
    pub async fn event(&mut self) -> TaskEvent {
        loop {
            match self.next().await {
                Item::Event(event) => return event,
                Item::Bookmark(_) => {}
                Item::Initial(task) => panic!("initial state in mid-stream: {task:?}"),
            }
        }
    }

    /// The next bookmark, which must be the next message.
    pub async fn bookmark(&mut self) -> Bookmark {
        match self.next().await {
            Item::Bookmark(bookmark) => bookmark,
            other @ (Item::Event(_) | Item::Initial(_)) => panic!("no bookmark: {other:?}"),
        }
    }

    /// The initial state and the bookmark behind it.
    pub async fn initial(&mut self) -> (Vec<BackgroundTask>, Bookmark) {
        let mut tasks = Vec::new();
        loop {
            match self.next().await {
                Item::Initial(task) => tasks.push(task),
                Item::Bookmark(bookmark) => return (tasks, bookmark),
                Item::Event(event) => panic!("an event before the bookmark: {event:?}"),
            }
        }
    }

    /// Every event up to and including the first that fits.
    pub async fn until(&mut self, mut fits: impl FnMut(&TaskEvent) -> bool) -> Vec<TaskEvent> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.event().await);
            if fits(seen.last().expect("just pushed")) {
                return seen;
            }
        }
    }

    /// Every event up to and including this one of this task.
    pub async fn until_of(&mut self, id: &str, wanted: TaskEventType) -> Vec<TaskEvent> {
        let of = |event: &TaskEvent| event.task.as_ref().is_some_and(|task| task.id == id);
        self.until(|event| event.r#type() == wanted && of(event))
            .await
    }

    /// Every event up to a revision; none if it is 0.
    pub async fn up_to(&mut self, revision: u64) -> Vec<TaskEvent> {
        if revision == 0 {
            return Vec::new();
        }
        self.until(|event| event.revision >= revision).await
    }
}

/// The task that an event carries.
#[track_caller]
pub fn task_of(event: &TaskEvent) -> &BackgroundTask {
    event.task.as_ref().expect("an event carries its task")
}

/// What happened, in order.
pub fn types(events: &[TaskEvent]) -> Vec<TaskEventType> {
    events.iter().map(TaskEvent::r#type).collect()
}
