//! The position of a stream over many tasks: what was received, and what to request next. Pure: messages
//! in, items out.
//!
//! The tasks that are there already are given only when all of them are known. A beginning that breaks off
//! is requested again, and a part of the old one could name tasks that have ended since.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use heeler_proto::v1::{
    BackgroundTask, FollowOutputRequest, FollowOutputResponse, OutputCursor,
    follow_output_response::Item,
};

use super::FollowItem;
use crate::{
    backoff,
    client::Stub,
    error::Error,
    stream::{
        Chunk,
        resume::{self, Asked},
    },
};

#[derive(Debug)]
pub(super) struct Cursor {
    first: FollowOutputRequest,
    /// The revision and the epoch to resume after. `None` until the first bookmark.
    seen: Option<(u64, String)>,
    /// The tasks that are followed, and the offset of each; `None` where it was to begin.
    tasks: BTreeMap<String, Option<u64>>,
    ready: VecDeque<FollowItem>,
    is_over: bool,
}

impl Cursor {
    pub(super) fn new(first: FollowOutputRequest) -> Self {
        Self {
            first,
            seen: None,
            tasks: BTreeMap::new(),
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// The next request.
    fn request(&self) -> FollowOutputRequest {
        let Some((revision, epoch)) = &self.seen else {
            return self.first.clone();
        };
        let cursor = |(id, offset): (&String, &Option<u64>)| OutputCursor {
            task_id: id.clone(),
            offset: *offset,
        };
        FollowOutputRequest {
            cursors: self.tasks.iter().map(cursor).collect(),
            after_revision: Some(*revision),
            epoch: epoch.clone(),
            include_finished: false,
            ..self.first.clone()
        }
    }

    /// The offset at which a task begins, if it is known before the first output. A task that has not
    /// started begins with its first byte, also if it has written more by the time of a break.
    fn first_offset(&self, task: &BackgroundTask) -> Option<u64> {
        let mut given = self.first.cursors.iter();
        let given = given.find(|of| of.task_id == task.id);
        let given = given.and_then(|cursor| cursor.offset);
        given.or(task.start_time.is_none().then_some(0))
    }

    fn take(&mut self, message: FollowOutputResponse) {
        if let Some((revision, _)) = &mut self.seen {
            *revision = message.revision.max(*revision);
        }
        match message.item {
            // It is sent again after a break.
            Some(Item::Task(task)) if self.tasks.contains_key(&task.id) => {}
            Some(Item::Task(task)) => {
                let offset = self.first_offset(&task);
                self.tasks.insert(task.id.clone(), offset);
                self.ready.push_back(FollowItem::Task(task));
            }
            Some(Item::Output(output)) => {
                let task_id = output.task_id;
                self.tasks.insert(task_id.clone(), Some(output.next_offset));
                let chunks = output.chunks.into_iter().map(|chunk| FollowItem::Output {
                    task_id: task_id.clone(),
                    chunk: Chunk::from(chunk),
                });
                self.ready.extend(chunks);
            }
            Some(Item::Ended(task)) => {
                self.tasks.remove(&task.id);
                self.ready.push_back(FollowItem::Ended(task));
            }
            Some(Item::Gone(gone)) => {
                self.tasks.remove(&gone.task_id);
                self.ready.push_back(FollowItem::Gone(gone.task_id));
            }
            Some(Item::Bookmark(bookmark)) => {
                self.seen = Some((message.revision, bookmark.epoch));
            }
            Some(Item::Finished(_)) => self.is_over = true,
            // An item of a newer daemon.
            None => {}
        }
    }
}

impl resume::Cursor for Cursor {
    type Message = FollowOutputResponse;
    type Item = FollowItem;

    fn ask(&self, mut stub: Stub) -> Asked<FollowOutputResponse> {
        let request = self.request();
        Box::pin(async move { stub.follow_output(request).await })
    }

    fn take(&mut self, message: FollowOutputResponse) -> Result<(), Error> {
        self.take(message);
        Ok(())
    }

    fn give(&mut self) -> Option<FollowItem> {
        self.seen.as_ref()?;
        self.ready.pop_front()
    }

    fn broke(&mut self) {
        if self.seen.is_none() {
            self.tasks.clear();
            self.ready.clear();
        }
    }

    fn longest_pause(&self) -> Duration {
        backoff::LONGEST
    }

    fn is_over(&self) -> bool {
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use heeler_proto::v1::{
        FollowBookmark, FollowFinished, FollowedOutput, OutputChunk, output_chunk::Content,
    };
    use prost_types::Timestamp;

    use super::*;

    fn message(revision: u64, item: Item) -> FollowOutputResponse {
        FollowOutputResponse {
            item: Some(item),
            revision,
        }
    }

    fn task(id: &str) -> BackgroundTask {
        BackgroundTask {
            id: id.to_owned(),
            start_time: Some(Timestamp::default()),
            ..BackgroundTask::default()
        }
    }

    fn output(id: &str, text: &str, next_offset: u64) -> Item {
        Item::Output(FollowedOutput {
            task_id: id.to_owned(),
            chunks: vec![OutputChunk {
                content: Some(Content::Text(text.to_owned())),
                ..OutputChunk::default()
            }],
            next_offset,
        })
    }

    fn bookmark() -> Item {
        Item::Bookmark(FollowBookmark {
            epoch: "here".to_owned(),
        })
    }

    /// O15
    #[test]
    fn after_a_break_it_resumes_each_task_that_has_not_ended() {
        let mut cursor = Cursor::new(FollowOutputRequest {
            include_finished: true,
            ..FollowOutputRequest::default()
        });
        cursor.take(message(4, Item::Task(task("a"))));
        cursor.take(message(4, Item::Task(task("b"))));
        assert_eq!(
            cursor.request(),
            cursor.first,
            "not complete before a bookmark"
        );
        cursor.take(message(4, bookmark()));
        cursor.take(message(4, output("a", "x", 7)));
        cursor.take(message(6, Item::Task(task("c"))));
        cursor.take(message(8, Item::Ended(task("b"))));
        let request = cursor.request();
        let cursors = request.cursors.iter();
        let places: Vec<_> = cursors.map(|of| (of.task_id.as_str(), of.offset)).collect();
        assert_eq!(places, [("a", Some(7)), ("c", None)]);
        assert_eq!((request.after_revision, &*request.epoch), (Some(8), "here"));
        assert!(!request.include_finished);
    }

    /// O15
    #[test]
    fn a_task_that_has_not_started_is_resumed_at_its_first_byte() {
        let mut cursor = Cursor::new(FollowOutputRequest::default());
        cursor.take(message(1, bookmark()));
        let created = BackgroundTask {
            start_time: None,
            ..task("a")
        };
        cursor.take(message(2, Item::Task(created)));
        assert_eq!(cursor.request().cursors[0].offset, Some(0));
    }

    /// O15
    #[test]
    fn a_task_that_is_sent_again_is_returned_once_and_the_last_message_ends_the_stream() {
        let mut cursor = Cursor::new(FollowOutputRequest::default());
        for _ in 0..2 {
            cursor.take(message(1, Item::Task(task("a"))));
            cursor.take(message(1, bookmark()));
        }
        cursor.take(message(1, Item::Finished(FollowFinished {})));
        assert_eq!(
            resume::Cursor::give(&mut cursor),
            Some(FollowItem::Task(task("a")))
        );
        assert_eq!(resume::Cursor::give(&mut cursor), None);
        assert!(resume::Cursor::is_over(&cursor));
    }

    /// O15
    #[test]
    fn a_beginning_that_breaks_off_is_requested_again_and_given_once() {
        let mut cursor = Cursor::new(FollowOutputRequest::default());
        cursor.take(message(1, Item::Task(task("a"))));
        cursor.take(message(1, Item::Task(task("b"))));
        assert_eq!(resume::Cursor::give(&mut cursor), None);
        resume::Cursor::broke(&mut cursor);
        assert_eq!(cursor.request(), cursor.first);
        cursor.take(message(2, Item::Task(task("b"))));
        cursor.take(message(2, bookmark()));
        assert_eq!(
            resume::Cursor::give(&mut cursor),
            Some(FollowItem::Task(task("b"))),
            "a has ended in between"
        );
        assert_eq!(resume::Cursor::give(&mut cursor), None);
    }
}
