//! The event stream, read with a deadline.

use heeler_proto::v1::{
    BackgroundTask, Bookmark, TaskEvent, TaskEventType, WatchEventsResponse,
    watch_events_response::Item,
};
use tonic::{Status, Streaming};

use crate::within;

/// An open event stream.
#[derive(Debug)]
pub struct Watch {
    stream: Streaming<WatchEventsResponse>,
}

impl Watch {
    pub(crate) fn new(stream: Streaming<WatchEventsResponse>) -> Self {
        Self { stream }
    }

    /// The next message, or the status that ended the stream.
    pub async fn try_next(&mut self) -> Result<Item, Status> {
        let message = within("a message on the event stream", self.stream.message()).await?;
        let end = || Status::unavailable("the stream has ended");
        message
            .ok_or_else(end)
            .map(|message| message.item.expect("an item"))
    }

    /// The next message.
    pub async fn next(&mut self) -> Item {
        self.try_next().await.expect("an open stream")
    }

    /// The next event, past any bookmarks.
    pub async fn event(&mut self) -> TaskEvent {
        loop {
            match self.next().await {
                Item::Event(event) => return event,
                Item::Bookmark(_) => {}
                Item::Initial(task) => panic!("initial state after the bookmark: {task:?}"),
            }
        }
    }

    /// The next bookmark, which must be the next message.
    pub async fn bookmark(&mut self) -> Bookmark {
        match self.next().await {
            Item::Bookmark(bookmark) => bookmark,
            other @ (Item::Event(_) | Item::Initial(_)) => panic!("not a bookmark: {other:?}"),
        }
    }

    /// The initial state and the bookmark that follows it.
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

    /// Every event up to and including the first that matches.
    pub async fn until(&mut self, mut matches: impl FnMut(&TaskEvent) -> bool) -> Vec<TaskEvent> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.event().await);
            if matches(seen.last().expect("just pushed")) {
                return seen;
            }
        }
    }

    /// Every event up to and including a task's first of this type.
    pub async fn until_of(&mut self, id: &str, wanted: TaskEventType) -> Vec<TaskEvent> {
        self.until(|event| event.r#type() == wanted && is_of(event, id))
            .await
    }

    /// Every event up to a revision; none if the revision is 0.
    pub async fn up_to(&mut self, revision: u64) -> Vec<TaskEvent> {
        if revision == 0 {
            return Vec::new();
        }
        self.until(|event| event.revision >= revision).await
    }
}

/// The events of a task that started at once and ended in one step.
pub const ONE_RUN: [TaskEventType; 3] = [
    TaskEventType::Created,
    TaskEventType::Started,
    TaskEventType::Ended,
];

/// True if the event is about this task.
pub fn is_of(event: &TaskEvent, id: &str) -> bool {
    event.task.as_ref().is_some_and(|task| task.id == id)
}

/// The task that an event carries.
#[track_caller]
pub fn task_of(event: &TaskEvent) -> &BackgroundTask {
    event.task.as_ref().expect("an event carries its task")
}

/// The types of events, in order.
pub fn types(events: &[TaskEvent]) -> Vec<TaskEventType> {
    events.iter().map(TaskEvent::r#type).collect()
}

/// The number of events of a type.
pub fn count(events: &[TaskEvent], wanted: TaskEventType) -> usize {
    events
        .iter()
        .filter(|event| event.r#type() == wanted)
        .count()
}
