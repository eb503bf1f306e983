//! The stream of FollowOutput, read with a deadline, and what it has sent of each task.

use std::collections::BTreeMap;

use heeler_proto::v1::{
    BackgroundTask, FollowOutputRequest, FollowOutputResponse, OutputChunk, OutputCursor,
    follow_output_response::Item,
};
use tonic::{Response, Status, Streaming};

use crate::{Api, output::bytes, within};

/// An open stream, and everything received from it and from the streams that it resumes.
#[derive(Debug)]
pub struct Follow {
    stream: Streaming<FollowOutputResponse>,
    request: FollowOutputRequest,
    pub tasks: BTreeMap<String, Followed>,
    /// In the order of their ends.
    pub ended: Vec<String>,
    pub gone: Vec<String>,
    /// The tasks of the output messages, in order.
    pub turns: Vec<String>,
    pub bookmarks: usize,
    revision: u64,
    epoch: String,
    pub is_finished: bool,
}

/// The output of one task, as it was received.
#[derive(Debug, Default)]
pub struct Followed {
    pub chunks: Vec<OutputChunk>,
    pub next_offset: Option<u64>,
    pub end: Option<BackgroundTask>,
}

impl Followed {
    pub fn bytes(&self) -> Vec<u8> {
        bytes(&self.chunks)
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.bytes()).expect("text")
    }
}

impl Api {
    pub async fn try_follow(&self, request: FollowOutputRequest) -> Result<Follow, Status> {
        let stream = self.raw().follow_output(request.clone()).await;
        Ok(Follow {
            stream: stream.map(Response::into_inner)?,
            request,
            tasks: BTreeMap::new(),
            ended: Vec::new(),
            gone: Vec::new(),
            turns: Vec::new(),
            bookmarks: 0,
            revision: 0,
            epoch: String::new(),
            is_finished: false,
        })
    }

    /// Follows output, which must be accepted.
    pub async fn follow(&self, request: FollowOutputRequest) -> Follow {
        self.try_follow(request).await.expect("a stream")
    }
}

impl Follow {
    /// Takes the next message, or the status that ended the stream.
    pub async fn try_step(&mut self) -> Result<(), Status> {
        let message = within("a message of FollowOutput", self.stream.message()).await?;
        let end = || Status::unavailable("the stream has ended");
        self.take(message.ok_or_else(end)?);
        Ok(())
    }

    /// Takes messages until the condition is met.
    pub async fn until(&mut self, what: &str, mut condition: impl FnMut(&Self) -> bool) {
        while !condition(self) {
            let step = self.try_step().await;
            step.unwrap_or_else(|status| panic!("{what}: {status:?}"));
        }
    }

    /// Takes messages until the last one.
    pub async fn finished(&mut self) {
        self.until("the last message", |follow| follow.is_finished)
            .await;
        let end = within("the end of the stream", self.stream.message()).await;
        assert!(matches!(end, Ok(None)), "{end:?}");
    }

    /// The output of a task that is followed, as it was received.
    #[track_caller]
    pub fn of(&self, id: &str) -> &Followed {
        self.tasks.get(id).expect("a task that is followed")
    }

    /// Resumes the stream at another server.
    pub async fn resume(&mut self, api: &Api) {
        let live = self.tasks.iter().filter(|(_, task)| task.end.is_none());
        let cursor = |(id, task): (&String, &Followed)| OutputCursor {
            task_id: id.clone(),
            offset: task.next_offset,
        };
        assert!(self.bookmarks > 0, "it broke before the first bookmark");
        let request = FollowOutputRequest {
            cursors: live.map(cursor).collect(),
            after_revision: Some(self.revision),
            epoch: self.epoch.clone(),
            include_finished: false,
            ..self.request.clone()
        };
        let stream = api.raw().follow_output(request).await;
        self.stream = stream.expect("a stream").into_inner();
    }

    fn take(&mut self, message: FollowOutputResponse) {
        assert!(!self.is_finished, "a message after the last");
        assert!(message.revision >= self.revision, "{message:?}");
        self.revision = message.revision;
        match message.item.expect("an item") {
            Item::Task(task) => {
                let followed = self.tasks.entry(task.id).or_default();
                assert!(followed.end.is_none(), "it began again: {followed:?}");
            }
            Item::Output(output) => {
                let followed = self.tasks.get_mut(&output.task_id).expect("a task");
                assert!(followed.end.is_none(), "output after the end");
                followed.chunks.extend(output.chunks);
                followed.next_offset = Some(output.next_offset);
                self.turns.push(output.task_id);
            }
            Item::Ended(task) => {
                let followed = self.tasks.get_mut(&task.id).expect("a task");
                assert!(followed.end.is_none(), "it ended twice");
                self.ended.push(task.id.clone());
                followed.end = Some(task);
            }
            Item::Gone(gone) => {
                self.tasks.remove(&gone.task_id);
                self.gone.push(gone.task_id);
            }
            Item::Bookmark(bookmark) => {
                self.bookmarks += 1;
                self.epoch = bookmark.epoch;
            }
            Item::Finished(_) => self.is_finished = true,
        }
    }
}
