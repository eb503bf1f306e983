//! Attach: streams a task's output and, for a foreground task, keeps the client attached.
//!
//! ```text
//! New ──attached──> Following ──detached, leader exited, finished──> Ending ──ended──> Done
//! ```

use std::sync::Arc;

use heeler_proto::v1::{self, attach_request::Start, attach_response::Item};
use prost::Message;
use tokio::task::yield_now;

use super::reader::{Reader, Shown, unreadable};
use crate::{
    service::{
        Service,
        transport::Call,
        wire::{
            check,
            output::{Selection, View},
            refusal::Refusal,
            stream::{Messages, Source},
            task,
        },
    },
    supervisor::{AttachedClient, Extent, Handle, OutputStart, PieceLimits},
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
    reader: Reader,
    /// Bytes that are read at a time.
    piece: usize,
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
        None => OutputStart::Offset(0),
        Some(Start::Offset(offset)) => OutputStart::Offset(offset),
        Some(Start::TailBytes(bytes)) => OutputStart::TailBytes(bytes),
    };
    let id = check::task_id("task_id", &request.task_id)?;
    let view = View::read("view", request.view)?;
    let reader = Reader::new(id, start, Selection::All, view);
    // An unknown task is refused before the stream begins.
    service.find_to_act(reader.id()).await?;
    Ok(Messages::of(Attachment {
        service: service.clone(),
        reader,
        piece: PIECE,
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
        if self.piece == SMALL_PIECE {
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
                self.piece = match self.call.hold(message.encoded_len()) {
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
        if let Some(handle) = self.service.supervisor.live(self.reader.id()) {
            self.client = Some(handle.attach());
        }
        let task = self.service.find(self.reader.id()).await?;
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
        let handle = self.service.supervisor.live(self.reader.id());
        // The end is checked before the output is read, so that `finish` sends all of it.
        let task = self.service.find(self.reader.id()).await?;
        if let Some(end) = task.attach_end(from) {
            let reason = reason(end);
            let extent = Extent::of(&task);
            let until = self.service.supervisor.output_end(self.reader.id(), extent);
            let until = until.await.map_err(|error| unreadable(&error))?;
            self.stage = Stage::Ending {
                task,
                reason,
                until,
            };
            return Ok(None);
        }
        match self.next_piece(Extent::Growing).await? {
            Some(piece) if piece.chunks.is_empty() => {
                // A client that has the output by other means asks for none.
                let end = piece.end_offset.max(piece.next_offset);
                self.grown(handle, from, end).await?;
                Ok(None)
            }
            piece => Ok(piece.map(output_item)),
        }
    }

    async fn next_piece(&mut self, extent: Extent) -> Result<Option<Shown>, Refusal> {
        let limits = PieceLimits {
            bytes: self.piece,
            lines: None,
        };
        let (service, call) = (&self.service, &self.call);
        self.reader.next(service, extent, limits, call).await
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
        if self.reader.offset().is_none_or(|offset| offset < until) {
            let extent = Extent::of(&*self.service.find(self.reader.id()).await?);
            let piece = self.next_piece(extent).await?;
            if let Some(piece) = piece.filter(|piece| !piece.chunks.is_empty()) {
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

fn output_item(piece: Shown) -> Item {
    Item::Output(v1::AttachedOutput {
        chunks: piece.chunks,
        next_offset: piece.next_offset,
    })
}
