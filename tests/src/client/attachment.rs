//! A hold on a task, read with a deadline.

use heeler_proto::v1::{
    AttachEnded, AttachRequest, AttachResponse, AttachedOutput, BackgroundTask, attach_request,
    attach_response::Item,
};
use tonic::{Status, Streaming};

use crate::{Api, api::raw, within};

/// An open stream; dropping it lets go of the task.
#[derive(Debug)]
pub struct Attachment {
    stream: Streaming<AttachResponse>,
    /// The task as it was at the beginning.
    pub task: BackgroundTask,
    /// What has come so far.
    pub output: Vec<u8>,
    start: u64,
}

impl Api {
    /// Attaches to a task from its first byte on.
    pub async fn attach(&self, id: &str) -> Attachment {
        self.attach_at(id, 0).await.expect("a task to attach to")
    }

    /// Attaches to a task from an offset on.
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
                start,
            }),
            other => panic!("something came before the beginning: {other:?}"),
        }
    }
}

impl Attachment {
    /// The next message, or how the stream broke.
    pub async fn try_next(&mut self) -> Result<Option<Item>, Status> {
        let message = within("a message of the hold", self.stream.message()).await?;
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
            let behind = self.start + self.output.len() as u64;
            assert_eq!(chunk.offset, behind, "no gap and no overlap");
            self.output.extend_from_slice(raw(chunk));
        }
        let behind = self.start + self.output.len() as u64;
        assert_eq!(output.next_offset, behind, "where to go on");
    }

    /// Reads until the output has this text in it.
    pub async fn until(&mut self, text: &str) {
        while !String::from_utf8_lossy(&self.output).contains(text) {
            match self.try_next().await.expect("a hold that goes on") {
                Some(Item::Output(_)) => {}
                other => panic!("{other:?} before {text:?}: {:?}", self.output),
            }
        }
    }

    /// Reads to the release, which must be the last message.
    pub async fn ended(&mut self) -> AttachEnded {
        loop {
            match self.try_next().await.expect("a hold that goes on") {
                Some(Item::Output(_)) => {}
                Some(Item::Ended(ended)) => {
                    let end = self.try_next().await.expect("a clean end");
                    assert_eq!(end, None, "the release comes last");
                    return ended;
                }
                other @ (Some(Item::Attached(_)) | None) => panic!("no release: {other:?}"),
            }
        }
    }
}
