//! An attachment to a task, read with a deadline.

use heeler_proto::v1::{
    AttachEnded, AttachRequest, AttachResponse, AttachedOutput, BackgroundTask, OutputChunk,
    attach_request, attach_response::Item,
};
use tonic::{Status, Streaming};

use crate::{
    Api,
    output::{end, gap, raw},
    within,
};

/// An open Attach stream; dropping it disconnects the client.
#[derive(Debug)]
pub struct Attachment {
    stream: Streaming<AttachResponse>,
    /// The state of the task when the stream began.
    pub task: BackgroundTask,
    /// The output received so far.
    pub output: Vec<u8>,
    /// The gaps in it.
    pub gaps: Vec<OutputChunk>,
    next: u64,
}

impl Api {
    /// Attaches to a task from its first byte of output.
    pub async fn attach(&self, id: &str) -> Attachment {
        self.attach_at(id, 0).await.expect("a task to attach to")
    }

    /// Attaches to a task from an offset of its output.
    pub async fn attach_at(&self, id: &str, start: u64) -> Result<Attachment, Status> {
        let request = AttachRequest {
            task_id: id.to_owned(),
            start: Some(attach_request::Start::Offset(start)),
            ..Default::default()
        };
        let mut stream = self.raw().attach(request).await?.into_inner();
        let first = within("the first message", stream.message()).await?;
        match first.and_then(|message| message.item) {
            Some(Item::Attached(attached)) => Ok(Attachment {
                stream,
                task: attached.task.expect("a task"),
                output: Vec::new(),
                gaps: Vec::new(),
                next: start,
            }),
            other => panic!("the first message is not `attached`: {other:?}"),
        }
    }
}

impl Attachment {
    /// The next message, or the status that ended the stream.
    pub async fn try_next(&mut self) -> Result<Option<Item>, Status> {
        let message = within("a message on the attach stream", self.stream.message()).await?;
        Ok(message.map(|message| {
            let item = message.item.expect("an item");
            if let Item::Output(output) = &item {
                self.take(output);
            }
            item
        }))
    }

    fn take(&mut self, output: &AttachedOutput) {
        for chunk in &output.chunks {
            assert_eq!(chunk.offset, self.next, "not where the last one ended");
            self.next = end(chunk);
            match gap(chunk) {
                Some(_) => self.gaps.push(chunk.clone()),
                None => self.output.extend_from_slice(raw(chunk)),
            }
        }
        assert_eq!(output.next_offset, self.next, "the next offset");
    }

    /// Reads until the output contains this text.
    pub async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.output).contains(text) {
            match self.try_next().await.expect("an open stream") {
                Some(Item::Output(_)) => {}
                other => panic!("{other:?} before {text:?}: {:?}", self.output),
            }
        }
    }

    /// Reads to `ended`, which must be the last message.
    pub async fn ended(&mut self) -> AttachEnded {
        loop {
            match self.try_next().await.expect("an open stream") {
                Some(Item::Output(_)) => {}
                Some(Item::Ended(ended)) => {
                    let end = self.try_next().await.expect("a clean end");
                    assert_eq!(end, None, "`ended` is the last message");
                    return ended;
                }
                other @ (Some(Item::Attached(_)) | None) => {
                    panic!("the stream ended without `ended`: {other:?}")
                }
            }
        }
    }
}
