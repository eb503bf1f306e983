//! What can be asked of an actor, and its answers. What is asked for is on disk before it is done, and
//! before it is answered.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    CancelRequest, Cascade,
    actor::TaskActor,
    lifecycle::{DetachRequest, Input, StopRequest},
};
use crate::{
    crash,
    journal::JournalError,
    process::shim::ShimOrder,
    task::{Placement, Task, Timestamp},
};

/// What can be asked of an actor.
#[derive(Debug)]
pub(super) enum Message {
    /// Stop the task.
    Cancel {
        request: CancelRequest,
        reply: oneshot::Sender<Result<Cancelled, JournalError>>,
    },
    /// Release whoever the task holds.
    Detach {
        request: DetachRequest,
        reply: oneshot::Sender<Result<Detached, JournalError>>,
    },
    /// Tell when there is output beyond this offset.
    Follow { beyond: u64 },
}

/// What a cancel found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    /// It was running, and has now been asked to stop.
    Requested,
    /// It was being stopped already.
    AlreadyStopping,
    /// It was over already.
    AlreadyFinished,
}

/// The answer to a cancel.
#[derive(Debug, Clone)]
pub struct Cancelled {
    /// The task after it.
    pub task: Arc<Task>,
    /// What was found.
    pub outcome: CancelOutcome,
}

/// What a detach found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DetachOutcome {
    /// It was in the foreground, and is no more.
    Detached,
    /// It was in the background already.
    AlreadyBackground,
    /// It was over already.
    AlreadyFinished,
}

/// The answer to a detach.
#[derive(Debug, Clone)]
pub struct Detached {
    /// The task after it.
    pub task: Arc<Task>,
    /// What was found.
    pub outcome: DetachOutcome,
}

impl TaskActor {
    pub(super) async fn asked(&mut self, message: Message) {
        match message {
            Message::Cancel { request, reply } => {
                let answer = self.cancel(request).await;
                // The caller may have gone; its cancel stands.
                let _ = reply.send(answer);
            }
            Message::Detach { request, reply } => {
                let answer = self.detach(request).await;
                let _ = reply.send(answer);
            }
            Message::Follow { beyond } => self.order(ShimOrder::Follow { beyond }).await,
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
        self.grant(Input::StopRequested(stop)).await?;
        Ok(Cancelled {
            task: Arc::clone(&self.ends.state.borrow()),
            outcome,
        })
    }

    async fn detach(&mut self, request: DetachRequest) -> Result<Detached, JournalError> {
        let outcome = match self.life.task.placement() {
            _ if self.life.is_over() => DetachOutcome::AlreadyFinished,
            Placement::Foreground => DetachOutcome::Detached,
            Placement::Background => DetachOutcome::AlreadyBackground,
        };
        crash::point("detach.before-intent");
        self.grant(Input::Detach(request)).await?;
        Ok(Detached {
            task: Arc::clone(&self.ends.state.borrow()),
            outcome,
        })
    }

    /// Does what somebody asks for, or, where that cannot be recorded, nothing: what is not durable
    /// has not been asked for.
    async fn grant(&mut self, input: Input) -> Result<(), JournalError> {
        let before = self.life.clone();
        for effect in self.life.step(input, Timestamp::now()) {
            if let Err(error) = self.carry_out(effect).await {
                self.life = before;
                return Err(error);
            }
        }
        Ok(())
    }
}
