//! Messages to an actor. A request is durable before it is carried out and before it is answered.

use std::sync::Arc;

use super::TaskActor;
use crate::{
    crash,
    journal::JournalError,
    supervisor::{
        CancelOutcome, CancelRequest, Cancelled, Cascade, DetachOutcome, DetachRequest, Detached,
        lifecycle::{Input, StopRequest},
        requests::{Answer, Reply},
    },
    task::{Placement, Survivor},
};

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
    /// Publish the next output beyond this offset.
    FollowOutput { beyond: u64 },
    /// The kill of a child task is overdue.
    ChildKillOverdue(Vec<Survivor>),
}

impl TaskActor {
    pub(super) async fn handle_message(&mut self, message: Message) {
        match message {
            Message::Cancel { request, reply } => {
                let answer = self.cancel(request).await;
                // The caller may have left; the cancel stands.
                let _ = reply.send(answer);
            }
            Message::Detach { request, reply } => {
                let answer = self.detach(request).await;
                let _ = reply.send(answer);
            }
            Message::FollowOutput { beyond } => self.follow_output(beyond).await,
            Message::ChildKillOverdue(survivors) => {
                self.apply(Input::ChildKillOverdue(survivors)).await;
            }
        }
    }

    async fn cancel(&mut self, request: CancelRequest) -> Result<Cancelled, JournalError> {
        let outcome = match self.life.task.stop {
            Some(_) => CancelOutcome::AlreadyStopping,
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
        self.apply_or_undo(Input::StopRequested(stop)).await?;
        Ok(self.answer(outcome))
    }

    async fn detach(&mut self, request: DetachRequest) -> Result<Detached, JournalError> {
        let outcome = match self.life.task.placement() {
            _ if self.life.is_tree_gone() => DetachOutcome::AlreadyFinished,
            Placement::Foreground => DetachOutcome::Detached,
            Placement::Background => DetachOutcome::AlreadyBackground,
        };
        crash::point("detach.before-intent");
        self.apply_or_undo(Input::Detach(request)).await?;
        Ok(self.answer(outcome))
    }

    fn answer<O>(&self, outcome: O) -> Answer<O> {
        Answer {
            task: Arc::clone(&self.channels.state.borrow()),
            outcome,
        }
    }
}
