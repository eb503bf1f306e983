//! The position of a watch: what was received, and what to request next. Pure: messages in, items out.

use std::{collections::VecDeque, time::Duration};

use heeler_proto::v1::{BackgroundTask, WatchEventsRequest, watch_events_response::Item};
use heeler_proto::v1::{Bookmark, WatchEventsResponse};

use super::options::WatchItem;
use crate::{
    backoff,
    client::Stub,
    error::Error,
    stream::resume::{self, Asked},
};

/// The position of a watch in the journal.
///
/// The initial state is returned only when it is complete. After a break it is requested again, and a part
/// of the old one could contain tasks that ended in between.
#[derive(Debug)]
pub(super) struct Cursor {
    first: WatchEventsRequest,
    /// Everything up to this revision was returned. `None` until the first bookmark or event.
    seen: Option<Bookmark>,
    initial: Vec<BackgroundTask>,
    ready: VecDeque<WatchItem>,
}

impl Cursor {
    pub(super) fn new(first: WatchEventsRequest) -> Self {
        Self {
            first,
            seen: None,
            initial: Vec::new(),
            ready: VecDeque::new(),
        }
    }

    /// The next request.
    pub(super) fn request(&self) -> WatchEventsRequest {
        let Some(seen) = &self.seen else {
            return self.first.clone();
        };
        WatchEventsRequest {
            after_revision: Some(seen.revision),
            initial_state: false,
            epoch: seen.epoch.clone(),
            ..self.first.clone()
        }
    }

    /// Drops an incomplete initial state.
    pub(super) fn broke(&mut self) {
        self.initial.clear();
    }

    /// Processes a message.
    pub(super) fn take(&mut self, message: WatchEventsResponse) {
        match message.item {
            Some(Item::Initial(task)) => self.initial.push(task),
            Some(Item::Event(event)) => {
                let first = self.first.epoch.clone();
                let seen = self.seen.get_or_insert(Bookmark {
                    revision: 0,
                    epoch: first,
                });
                if event.revision > seen.revision {
                    seen.revision = event.revision;
                    self.ready.push_back(WatchItem::Event(event));
                }
            }
            Some(Item::Bookmark(bookmark)) => {
                self.ready
                    .extend(self.initial.drain(..).map(WatchItem::Initial));
                if self
                    .seen
                    .as_ref()
                    .is_none_or(|seen| bookmark.revision >= seen.revision)
                {
                    self.seen = Some(bookmark.clone());
                    self.ready.push_back(WatchItem::Bookmark(bookmark));
                }
            }
            // An item of a newer daemon.
            None => {}
        }
    }

    /// Returns the next item for the consumer.
    pub(super) fn give(&mut self) -> Option<WatchItem> {
        self.ready.pop_front()
    }
}

impl resume::Cursor for Cursor {
    type Message = WatchEventsResponse;
    type Item = WatchItem;

    fn ask(&self, mut stub: Stub) -> Asked<WatchEventsResponse> {
        let request = self.request();
        Box::pin(async move { stub.watch_events(request).await })
    }

    fn take(&mut self, message: WatchEventsResponse) -> Result<(), Error> {
        self.take(message);
        Ok(())
    }

    fn give(&mut self) -> Option<WatchItem> {
        self.give()
    }

    fn broke(&mut self) {
        self.broke();
    }

    fn longest_pause(&self) -> Duration {
        backoff::LONGEST
    }

    /// The stream has no last item.
    fn is_over(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use heeler_proto::v1::TaskEvent;

    use super::*;

    fn message(item: Item) -> WatchEventsResponse {
        WatchEventsResponse { item: Some(item) }
    }

    fn event(revision: u64) -> WatchEventsResponse {
        message(Item::Event(TaskEvent {
            revision,
            ..TaskEvent::default()
        }))
    }

    fn bookmark(revision: u64) -> WatchEventsResponse {
        message(Item::Bookmark(Bookmark {
            revision,
            epoch: "here".to_owned(),
        }))
    }

    fn initial(id: &str) -> WatchEventsResponse {
        message(Item::Initial(BackgroundTask {
            id: id.to_owned(),
            ..BackgroundTask::default()
        }))
    }

    /// Events as revisions, bookmarks as `b` and revision, tasks as their ids.
    fn given(cursor: &mut Cursor) -> Vec<String> {
        std::iter::from_fn(|| cursor.give())
            .map(|item| match item {
                WatchItem::Initial(task) => task.id,
                WatchItem::Event(event) => event.revision.to_string(),
                WatchItem::Bookmark(bookmark) => format!("b{}", bookmark.revision),
            })
            .collect()
    }

    fn after(revision: u64) -> Cursor {
        Cursor::new(WatchEventsRequest {
            after_revision: Some(revision),
            types: vec![6],
            ..WatchEventsRequest::default()
        })
    }

    /// E2
    #[test]
    fn after_a_break_it_resumes_after_the_last_event_in_the_same_epoch() {
        let mut cursor = after(4);
        for message in [bookmark(4), event(5), event(8)] {
            cursor.take(message);
        }
        cursor.broke();
        let request = cursor.request();
        assert_eq!(request.after_revision, Some(8));
        assert_eq!(request.epoch, "here");
        assert_eq!(request.types, [6], "the filter stays");
        assert_eq!(
            given(&mut cursor),
            ["b4", "5", "8"],
            "received items are still returned"
        );
    }

    /// E2
    #[test]
    fn an_event_that_is_sent_again_is_returned_once() {
        let mut cursor = after(0);
        for message in [
            bookmark(0),
            event(1),
            event(2),
            bookmark(1),
            event(2),
            event(3),
        ] {
            cursor.take(message);
        }
        assert_eq!(given(&mut cursor), ["b0", "1", "2", "3"]);
    }

    /// E8
    #[test]
    fn a_bookmark_moves_the_position_past_events_that_do_not_match() {
        let mut cursor = after(0);
        cursor.take(bookmark(0));
        cursor.take(bookmark(90));
        assert_eq!(cursor.request().after_revision, Some(90));
    }

    /// E3
    #[test]
    fn an_interrupted_initial_state_is_requested_again_and_returned_once() {
        let first = WatchEventsRequest {
            initial_state: true,
            ..WatchEventsRequest::default()
        };
        let mut cursor = Cursor::new(first);
        cursor.take(initial("a"));
        cursor.take(initial("b"));
        assert_eq!(given(&mut cursor), [""; 0]);
        cursor.broke();
        assert!(cursor.request().initial_state);

        cursor.take(initial("b"));
        cursor.take(bookmark(7));
        cursor.take(event(8));
        assert_eq!(given(&mut cursor), ["b", "b7", "8"]);
        cursor.broke();
        let request = cursor.request();
        assert!(!request.initial_state);
        assert_eq!(request.after_revision, Some(8));
    }

    #[test]
    fn a_watch_from_now_stays_one_until_the_first_answer() {
        let mut cursor = Cursor::new(WatchEventsRequest::default());
        cursor.broke();
        assert_eq!(cursor.request().after_revision, None);
        cursor.take(bookmark(3));
        assert_eq!(cursor.request().after_revision, Some(3));
    }
}
