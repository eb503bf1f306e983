//! Attach: a task's output from an offset on, and a hold on the task for as long as the caller stays.

use std::sync::Arc;

use heeler_proto::v1::{self, attach_request, attach_response::Item, read_output_request::Start};
use tonic::Request;

use super::read_output::{self, Read};
use crate::{
    service::{
        Service,
        transport::layer::CallPermit,
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

/// How much is read at once: what a client costs that does not read on.
const PIECE: usize = 32 * 1024;

/// Whoever is attached to a task.
#[derive(Debug)]
pub struct Attachment {
    service: Service,
    read: Read,
    stage: Stage,
    expects: Expectation,
    /// Until it is released, if it was in the foreground.
    client: Option<AttachedClient>,
    _permit: Option<CallPermit>,
}

/// What a caller takes the task for.
#[derive(Debug, Clone, Copy)]
enum Expectation {
    /// Whatever it is when the caller comes.
    AsItIs,
    /// One that holds the caller, who is released if it does not.
    Foreground,
}

/// How far it has come.
#[derive(Debug)]
enum Stage {
    /// What is held is still to be said.
    New,
    /// Output is being sent.
    Following { from: Placement },
    /// All is sent that was written before the release, but for what is before this offset.
    Ending {
        task: Arc<Task>,
        reason: v1::AttachEndReason,
        until: u64,
    },
    /// The release is said.
    Over,
}

pub(super) async fn attach(
    service: &Service,
    request: Request<v1::AttachRequest>,
) -> Result<Messages<Attachment>, Refusal> {
    let permit = request.extensions().get::<CallPermit>().cloned();
    let request = request.into_inner();
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
    // Said at once rather than as the stream's first item.
    service.find(&read.id).await?;
    Ok(Messages::of(Attachment {
        service: service.clone(),
        read,
        stage: Stage::New,
        expects: match request.foreground_only {
            true => Expectation::Foreground,
            false => Expectation::AsItIs,
        },
        client: None,
        _permit: permit,
    }))
}

impl Source for Attachment {
    type Message = v1::AttachResponse;

    async fn next(&mut self) -> Result<Vec<v1::AttachResponse>, Refusal> {
        loop {
            let item = match self.stage {
                Stage::New => Some(self.begin().await?),
                Stage::Following { from } => self.follow(from).await?,
                Stage::Ending { until, .. } => self.finish(until).await?,
                Stage::Over => return Ok(Vec::new()),
            };
            if let Some(item) = item {
                return Ok(vec![v1::AttachResponse { item: Some(item) }]);
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
            Expectation::AsItIs => task.placement(),
            Expectation::Foreground => Placement::Foreground,
        };
        self.stage = Stage::Following { from };
        Ok(Item::Attached(v1::Attached {
            task: Some(task::show(&task)),
        }))
    }

    /// The next piece of output; none if something else is to be done first.
    async fn follow(&mut self, from: Placement) -> Result<Option<Item>, Refusal> {
        let handle = self.service.supervisor.live(&self.read.id);
        // Whether it is released is asked before what it wrote: see `finish`.
        let task = self.service.find(&self.read.id).await?;
        if let Some(release) = task.attach_end(from) {
            let reason = reason(release);
            let until = read_output::end(&self.service, &self.read.id).await?;
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

    /// Waits until there is something to look at.
    async fn grown(
        &mut self,
        handle: Option<Handle>,
        from: Placement,
        end: u64,
    ) -> Result<(), Refusal> {
        // Without a handle it has just ended: look again.
        let Some(handle) = handle else { return Ok(()) };
        tokio::select! {
            () = handle.output_beyond(end) => Ok(()),
            _ = handle.attach_ended(from) => Ok(()),
            () = self.service.closing.begun() => {
                // It is the server that goes: the holder has not let go.
                std::mem::forget(self.client.take());
                Err(Refusal::shutting_down())
            }
        }
    }

    /// What was written before the release, and then the release.
    async fn finish(&mut self, until: u64) -> Result<Option<Item>, Refusal> {
        if self.read.offset() < until {
            let complete = !self.service.find(&self.read.id).await?.is_live();
            let piece = read_output::piece(&self.service, &mut self.read, complete).await?;
            if !piece.chunks.is_empty() {
                return Ok(Some(output_item(piece)));
            }
        }
        self.client = None;
        let Stage::Ending { task, reason, .. } = std::mem::replace(&mut self.stage, Stage::Over)
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

fn reason(release: AttachEnd) -> v1::AttachEndReason {
    match release {
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
