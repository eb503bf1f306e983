//! From where to watch, what, and what comes of it.

use std::time::Duration;

use heeler_proto::v1::{BackgroundTask, Bookmark, TaskEvent, TaskEventType, WatchEventsRequest};

use crate::{filter::Filter, time};

/// From where to watch, and what.
///
/// ```no_run
/// use heeler_client::{Client, Error, StreamExt, WatchItem, WatchOptions};
///
/// # async fn example(client: Client) -> Result<(), Error> {
/// let mut watch = client.watch(WatchOptions::with_initial_state());
/// while let Some(item) = watch.next().await {
///     match item? {
///         WatchItem::Initial(task) => println!("{} is there", task.id),
///         WatchItem::Event(event) => println!("{}: {:?}", event.revision, event.r#type()),
///         WatchItem::Bookmark(_) => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct WatchOptions {
    pub(super) message: WatchEventsRequest,
    pub(super) patience: Option<Duration>,
}

/// What a watch gives.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchItem {
    /// A live task as the initial state has it: all of them come before the first bookmark.
    Initial(BackgroundTask),
    /// Something that happened.
    Event(TaskEvent),
    /// How far the stream has come: what to keep in order to resume after a crash of the watcher.
    Bookmark(Bookmark),
}

impl From<WatchEventsRequest> for WatchOptions {
    /// As it is.
    fn from(message: WatchEventsRequest) -> Self {
        Self {
            message,
            patience: None,
        }
    }
}

impl WatchOptions {
    /// What happens from now on.
    pub fn from_now() -> Self {
        Self {
            message: WatchEventsRequest::default(),
            patience: None,
        }
    }

    /// Every event after this revision; 0: from the first that there is record of.
    pub fn after(revision: u64) -> Self {
        let mut options = Self::from_now();
        options.message.after_revision = Some(revision);
        options
    }

    /// Every event after a bookmark that was kept. Refused if the daemon now has another state
    /// directory.
    pub fn after_bookmark(bookmark: &Bookmark) -> Self {
        let mut options = Self::after(bookmark.revision);
        options.message.epoch.clone_from(&bookmark.epoch);
        options
    }

    /// First every live task, then what happens after that.
    pub fn with_initial_state() -> Self {
        let mut options = Self::from_now();
        options.message.initial_state = true;
        options
    }

    /// Only of these tasks.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.message.filter = Some(filter.into());
        self
    }

    /// Only events of this type, or of another that was named like this.
    pub fn event_type(mut self, kind: TaskEventType) -> Self {
        self.message.types.push(kind.into());
        self
    }

    /// How long the stream may be silent before a bookmark comes: at least 100 ms, 15 s if not said.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.message.bookmark_interval = Some(time::to_proto(interval));
        self
    }

    /// Ends with an error once the daemon has been away for this long. By default it is waited for
    /// without end.
    pub fn give_up_after(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }
}
