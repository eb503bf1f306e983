//! Attach: streams a task's output and, for a foreground task, keeps the client attached.
//!
//! ```text
//! New ──attached──> Following ──detached, leader exited, finished──> Ending ──ended──> Done
//! ```

use std::sync::Arc;

use heeler_proto::v1::{self, attach_request, attach_response::Item, read_output_request::Start};
use prost::Message;
use tokio::task::yield_now;

use super::read_output::{self, Read};
use crate::{
    service::{
        Service,
        transport::Call,
        wire::{
            check,
            refusal::Refusal,
            stream::{Messages, Source},
            task,
        },
    },
    supervisor::{AttachedClient, Handle},
    task::{AttachEnd, Placement, Task},
};

/// Bytes that are read at a time: the memory that a client costs that has stopped reading.
const PIECE: usize = 32 * 1024;
/// The same for a client with too much unread already.
const SMALL_PIECE: usize = 4 * 1024;

/// The stream of one attached client.
#[derive(Debug)]
pub(crate) struct Attachment {
    service: Service,
    read: Read,
    stage: Stage,
    expects: Expectation,
    /// Present while the task is in the foreground.
    client: Option<AttachedClient>,
    call: Call,
}

/// The placement that a client expects of the task.
#[derive(Debug, Clone, Copy)]
enum Expectation {
    /// Its placement when the client attaches.
    Present,
    /// The foreground: the stream ends if the task is not there.
    Foreground,
}

#[derive(Debug)]
enum Stage {
    /// `attached` is not sent yet.
    New,
    /// Output is being sent. The client attached in this placement.
    Following { from: Placement },
    /// The output up to this offset is being sent, then `ended`.
    Ending {
        task: Arc<Task>,
        reason: v1::AttachEndReason,
        until: u64,
    },
    /// `ended` is sent.
    Done,
}

pub(super) async fn attach(
    service: &Service,
    request: v1::AttachRequest,
    call: Call,
) -> Result<Messages<Attachment>, Refusal> {
    let start = match request.start {
        None => Start::Offset(0),
        Some(attach_request::Start::Offset(offset)) => Start::Offset(offset),
        Some(attach_request::Start::TailBytes(bytes)) => Start::TailBytes(bytes),
    };
    let read = Read {
        id: check::task_id("task_id", &request.task_id)?,
        start,
        max_bytes: PIECE,
        view: check::enumerated("view", request.view)?,
    };
    // An unknown task is refused before the stream begins.
    service.find(&read.id).await?;
    Ok(Messages::of(Attachment {
        service: service.clone(),
        read,
        stage: Stage::New,
        expects: match request.foreground_only {
            true => Expectation::Foreground,
            false => Expectation::Present,
        },
        client: None,
        call,
    }))
}

impl Source for Attachment {
    type Message = v1::AttachResponse;

    async fn next(&mut self) -> Result<Vec<v1::AttachResponse>, Refusal> {
        if self.read.max_bytes == SMALL_PIECE {
            // tonic gathers pieces as long as there are more: here it must send the one it has.
            yield_now().await;
        }
        loop {
            let item = match self.stage {
                Stage::New => Some(self.begin().await?),
                Stage::Following { from } => self.follow(from).await?,
                Stage::Ending { until, .. } => self.finish(until).await?,
                Stage::Done => return Ok(Vec::new()),
            };
            if item.is_some() {
                let message = v1::AttachResponse { item };
                self.read.max_bytes = match self.call.hold(message.encoded_len()) {
                    true => PIECE,
                    false => SMALL_PIECE,
                };
                return Ok(vec![message]);
            }
        }
    }
}

impl Attachment {
    async fn begin(&mut self) -> Result<Item, Refusal> {
        if let Some(handle) = self.service.supervisor.live(&self.read.id) {
            self.client = Some(handle.attach());
        }
        let task = self.service.find(&self.read.id).await?;
        if task.placement() == Placement::Background {
            self.client = None;
        }
        let from = match self.expects {
            Expectation::Present => task.placement(),
            Expectation::Foreground => Placement::Foreground,
        };
        self.stage = Stage::Following { from };
        Ok(Item::Attached(v1::Attached {
            task: Some(task::show(&task)),
        }))
    }

    /// Returns the next piece of output; `None` if the stage changed or there was nothing to send.
    async fn follow(&mut self, from: Placement) -> Result<Option<Item>, Refusal> {
        let handle = self.service.supervisor.live(&self.read.id);
        // The end is checked before the output is read, so that `finish` sends all of it.
        let task = self.service.find(&self.read.id).await?;
        if let Some(end) = task.attach_end(from) {
            let reason = reason(end);
            let until = self.service.supervisor.output_end(&self.read.id).await;
            let until = until.map_err(|error| read_output::unreadable(&error))?;
            self.stage = Stage::Ending {
                task,
                reason,
                until,
            };
            return Ok(None);
        }
        let piece = read_output::piece(&self.service, &mut self.read, false).await?;
        if piece.chunks.is_empty() {
            self.grown(handle, from, piece.end_offset).await?;
            return Ok(None);
        }
        Ok(Some(output_item(piece)))
    }

    /// Waits for more output or for the end.
    async fn grown(
        &mut self,
        handle: Option<Handle>,
        from: Placement,
        end: u64,
    ) -> Result<(), Refusal> {
        // Without a handle the task has just ended.
        let Some(handle) = handle else { return Ok(()) };
        self.call.hold(0);
        tokio::select! {
            () = handle.output_beyond(end) => Ok(()),
            _ = handle.attach_ended(from) => Ok(()),
            () = self.service.closing.begun() => {
                if let Some(client) = self.client.take() {
                    client.leave_to_next_server();
                }
                Err(Refusal::shutting_down())
            }
        }
    }

    /// Sends the output written before the end, then `ended`.
    async fn finish(&mut self, until: u64) -> Result<Option<Item>, Refusal> {
        if self.read.offset() < until {
            let complete = !self.service.find(&self.read.id).await?.is_live();
            let piece = read_output::piece(&self.service, &mut self.read, complete).await?;
            if !piece.chunks.is_empty() {
                return Ok(Some(output_item(piece)));
            }
        }
        self.client = None;
        let Stage::Ending { task, reason, .. } = std::mem::replace(&mut self.stage, Stage::Done)
        else {
            return Ok(None);
        };
        self.service.note_delivered(&task);
        Ok(Some(Item::Ended(v1::AttachEnded {
            task: Some(task::show(&task)),
            reason: reason.into(),
        })))
    }
}

fn reason(end: AttachEnd) -> v1::AttachEndReason {
    match end {
        AttachEnd::Detached => v1::AttachEndReason::Detached,
        AttachEnd::LeaderExited => v1::AttachEndReason::LeaderExited,
        AttachEnd::Finished => v1::AttachEndReason::Finished,
    }
}

fn output_item(piece: v1::ReadOutputResponse) -> Item {
    Item::Output(v1::AttachedOutput {
        chunks: piece.chunks,
        next_offset: piece.next_offset,
    })
}
