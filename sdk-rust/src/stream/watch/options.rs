//! The options and the items of a watch.

use std::time::Duration;

use heeler_proto::v1::{
    BackgroundTask, Bookmark, SessionOwnership, TaskEvent, TaskEventType, WatchEventsRequest,
};

use crate::{request::Filter, time};

/// The options of a watch.
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
    pub(super) time_limit: Option<Duration>,
}

/// An item of a watch.
#[derive(Debug, Clone, PartialEq)]
#[allow(
    clippy::large_enum_variant,
    reason = "an item is used at once, and most of them are events"
)]
pub enum WatchItem {
    /// A live task of the initial state. All of them come before the first bookmark.
    Initial(BackgroundTask),
    Event(TaskEvent),
    /// The position of the stream. Keep it to resume after a crash of the watcher.
    Bookmark(Bookmark),
}

impl From<WatchEventsRequest> for WatchOptions {
    fn from(message: WatchEventsRequest) -> Self {
        Self {
            message,
            time_limit: None,
        }
    }
}

impl WatchOptions {
    /// Events from now on.
    pub fn from_now() -> Self {
        Self {
            message: WatchEventsRequest::default(),
            time_limit: None,
        }
    }

    /// Every event after this revision; 0: every event that is kept.
    pub fn after(revision: u64) -> Self {
        let mut options = Self::from_now();
        options.message.after_revision = Some(revision);
        options
    }

    /// Every event after a bookmark. Refused if the daemon has another epoch.
    pub fn after_bookmark(bookmark: &Bookmark) -> Self {
        let mut options = Self::after(bookmark.revision);
        options.message.epoch.clone_from(&bookmark.epoch);
        options
    }

    /// Every live task first, then every event after that.
    pub fn with_initial_state() -> Self {
        let mut options = Self::from_now();
        options.message.initial_state = true;
        options
    }

    /// Only events of these tasks.
    pub fn matching(mut self, filter: Filter) -> Self {
        self.message.filter = Some(filter.into());
        self
    }

    /// Only events of this type. Several calls add up.
    pub fn event_type(mut self, kind: TaskEventType) -> Self {
        self.message.types.push(kind.into());
        self
    }

    /// Maximum silence before a bookmark: at least 100 ms, and 15 s unless set.
    pub fn bookmark_interval(mut self, interval: Duration) -> Self {
        self.message.bookmark_interval = Some(time::to_proto(interval));
        self
    }

    /// Adds a summary to ENDED events.
    pub fn summaries(mut self) -> Self {
        self.message.summaries = true;
        self
    }

    /// Makes this client an owner of a session as long as the watch lasts, from its first item on. When the last
    /// owner of a session is gone for the reattach window, 10 s unless set, its live tasks are cancelled: also
    /// if the owner was killed, and the daemon with it.
    pub fn own_session(
        mut self,
        session: impl Into<String>,
        reattach_window: Option<Duration>,
    ) -> Self {
        self.message.own_session = Some(SessionOwnership {
            session_id: session.into(),
            reattach_window: reattach_window.map(time::to_proto),
        });
        self
    }

    /// Ends with an error once the daemon has been unavailable for this long. By default there is no
    /// limit.
    pub fn give_up_after(mut self, limit: Duration) -> Self {
        self.time_limit = Some(limit);
        self
    }
}
