//! Messages to an actor. A request that changes the task's state is durable before it is carried out and before it is
//! answered. Only a stop is carried out without a record, where the disk refuses it, and its answer says so. Input and
//! the size of a terminal have no record: the shim keeps them.

use std::sync::Arc;

use super::{TaskActor, matching::Matching};
use crate::{
    crash,
    journal::JournalError,
    supervisor::{
        CancelOutcome, CancelRequest, Cancelled, Cascade, DetachOutcome, DetachRequest, Detached,
        PatternChange, UpdateOutcome, Updated,
        calls::input::{InputReply, InputStanding, InputWrite},
        calls::requests::{Answer, Reply},
        calls::work::WorkMessage,
        lifecycle::{Input, StopRequest},
        registry::handle::Standing,
    },
    task::{MOST_PATTERNS, Placement, Survivor, TerminalSize},
};

/// A message. Inboxes hold it in a box: every one has room for 32.
#[derive(Debug)]
pub(in crate::supervisor) enum Message {
    Cancel {
        request: CancelRequest,
        reply: Reply<CancelOutcome>,
    },
    Detach {
        request: DetachRequest,
        reply: Reply<DetachOutcome>,
    },
    ChangePatterns {
        change: PatternChange,
        reply: Reply<UpdateOutcome>,
    },
    /// Publish the next output beyond this offset.
    FollowOutput { beyond: u64 },
    /// Keep the output within so many bytes of disk.
    LimitOutput { bytes: u64 },
    /// The kill of a child task is overdue.
    ChildKillOverdue(Vec<Survivor>),
    /// A child task is gone, and the journal refuses its end.
    ChildUnrecorded(Arc<JournalError>),
    /// Write to the input.
    WriteInput {
        write: InputWrite,
        reply: InputReply<InputStanding>,
    },
    /// Change the size of the terminal.
    ResizeTerminal {
        size: TerminalSize,
        reply: InputReply<()>,
    },
    /// A request of a worker, or a message to it.
    Work(WorkMessage),
}

impl TaskActor {
    pub(super) async fn handle_message(&mut self, message: Message) {
        match message {
            Message::Cancel { request, reply } => {
                let answer = self.cancel(request).await;
                // The caller may have left; the cancel stands.
                let _ = reply.send(Ok(answer));
            }
            Message::Detach { request, reply } => {
                let answer = self.detach(request).await;
                let _ = reply.send(answer);
            }
            Message::ChangePatterns { change, reply } => {
                let answer = self.change_patterns(change).await;
                let _ = reply.send(answer);
            }
            Message::FollowOutput { beyond } => self.follow_output(beyond).await,
            Message::LimitOutput { bytes } => self.limit_output(bytes).await,
            Message::ChildKillOverdue(survivors) => {
                self.apply(Input::ChildKillOverdue(survivors)).await;
            }
            Message::ChildUnrecorded(error) => self.backlog.refused(error),
            Message::WriteInput { write, reply } => self.write_input(write, reply).await,
            Message::ResizeTerminal { size, reply } => self.resize_terminal(size, reply).await,
            Message::Work(message) => self.handle_work(message).await,
        }
    }

    async fn cancel(&mut self, request: CancelRequest) -> Cancelled {
        let outcome = match self.life.task.stop {
            Some(_) => CancelOutcome::AlreadyStopping,
            // Its end could not be recorded yet.
            None if self.life.is_tree_gone() => CancelOutcome::AlreadyFinished,
            None => CancelOutcome::Requested,
        };
        crash::point("cancel.before-intent");
        let stop = StopRequest {
            cause: request.cause,
            mode: request.mode_for(&self.life.task),
            actor: request.actor,
            reason: request.reason,
            cascade: request.cascade == Cascade::Children,
        };
        self.apply(Input::StopRequested(stop)).await;
        self.answer(outcome)
    }

    async fn detach(&mut self, request: DetachRequest) -> Result<Detached, Arc<JournalError>> {
        let outcome = match self.life.task.placement() {
            _ if self.life.is_tree_gone() => DetachOutcome::AlreadyFinished,
            Placement::Foreground => DetachOutcome::Detached,
            Placement::Background => DetachOutcome::AlreadyBackground,
        };
        crash::point("detach.before-intent");
        self.apply_or_undo(Input::Detach(request)).await?;
        Ok(self.answer(outcome))
    }

    async fn change_patterns(
        &mut self,
        change: PatternChange,
    ) -> Result<Updated, Arc<JournalError>> {
        if self.life.is_tree_gone() {
            return Ok(self.answer(UpdateOutcome::AlreadyFinished));
        }
        if self.life.task.is_hosted() {
            return Ok(self.answer(UpdateOutcome::NoOutput));
        }
        let patterns = change.apply(&self.life.task.spec.output.patterns);
        if patterns.len() > MOST_PATTERNS {
            return Ok(self.answer(UpdateOutcome::TooManyPatterns(patterns.len())));
        }
        if patterns != self.life.task.spec.output.patterns {
            self.apply_or_undo(Input::ChangePatterns(change)).await?;
            self.matching = Matching::of(&self.life.task);
        }
        Ok(self.answer(UpdateOutcome::Updated))
    }

    fn answer<O>(&self, outcome: O) -> Answer<O> {
        let standing = match self.channels.unrecorded.borrow().clone() {
            Some(unrecorded) => unrecorded.into(),
            None => Standing::recorded(Arc::clone(&self.channels.state.borrow())),
        };
        Answer { standing, outcome }
    }
}
