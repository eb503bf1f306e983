//! Cancel, Detach and UpdateTask: requests to the actor of a live task, with the answer for a finished one.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use crate::supervisor::{
    DetachRequest, PatternChange, Supervisor, registry::handle::Standing, task_actor::Message,
};
use crate::{
    journal::JournalError,
    task::{Actor, Signal, StopCause, StopMode, Task, TaskId},
};

/// A request to stop a task.
#[derive(Debug, Clone)]
pub(crate) struct CancelRequest {
    pub(crate) cause: StopCause,
    /// `None` uses the task's own stop policy.
    pub(crate) mode: Option<CancelMode>,
    pub(crate) actor: Actor,
    pub(crate) reason: Option<String>,
    pub(crate) cascade: Cascade,
}

/// A way to stop that replaces the task's own stop policy, or parts of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelMode {
    Graceful {
        grace: Option<Duration>,
        signal: Option<Signal>,
        soft_grace: Option<Duration>,
    },
    Force,
}

/// The reach of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cascade {
    /// The task and its child tasks; the children finish first.
    Children,
    /// The task alone.
    Alone,
}

/// The answer to a request: the task after it, and the state that the request found.
#[derive(Debug, Clone)]
pub(crate) struct Answer<O> {
    pub(crate) standing: Standing,
    pub(crate) outcome: O,
}

pub(crate) type Cancelled = Answer<CancelOutcome>;
pub(crate) type Detached = Answer<DetachOutcome>;
pub(crate) type Updated = Answer<UpdateOutcome>;

/// The sender on which an actor answers a request.
pub(in crate::supervisor) type Reply<O> = oneshot::Sender<Result<Answer<O>, Arc<JournalError>>>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CancelOutcome {
    Requested,
    AlreadyStopping,
    AlreadyFinished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetachOutcome {
    Detached,
    AlreadyBackground,
    AlreadyFinished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateOutcome {
    Updated,
    AlreadyFinished,
    /// Nothing was changed: the task is hosted.
    NoOutput,
    /// Nothing was changed: the task would have had this many patterns.
    TooManyPatterns(usize),
}

impl Supervisor {
    /// Asks a task to stop. The intent is durable when this returns, unless the answer says why it could
    /// not be recorded: the stop has begun in any case. `None` if there is no such task.
    pub(crate) async fn cancel(
        &self,
        id: &TaskId,
        request: CancelRequest,
    ) -> Result<Option<Cancelled>, Arc<JournalError>> {
        let message = |reply| Message::Cancel {
            request: request.clone(),
            reply,
        };
        self.ask(id, message, CancelOutcome::AlreadyFinished).await
    }

    /// Moves a task to the background. The move is durable when this returns; `None` if there is no
    /// such task.
    pub(crate) async fn detach(
        &self,
        id: &TaskId,
        request: DetachRequest,
    ) -> Result<Option<Detached>, Arc<JournalError>> {
        let message = |reply| Message::Detach {
            request: request.clone(),
            reply,
        };
        self.ask(id, message, DetachOutcome::AlreadyFinished).await
    }

    /// Changes the patterns of a task. The change is durable when this returns; `None` if there is no such
    /// task.
    pub(crate) async fn change_patterns(
        &self,
        id: &TaskId,
        change: PatternChange,
    ) -> Result<Option<Updated>, Arc<JournalError>> {
        let message = |reply| Message::ChangePatterns {
            change: change.clone(),
            reply,
        };
        self.ask(id, message, UpdateOutcome::AlreadyFinished).await
    }

    /// Asks the task's actor; `if_finished` is the outcome for a task that has none any more.
    async fn ask<O>(
        &self,
        id: &TaskId,
        message: impl Fn(Reply<O>) -> Message,
        if_finished: O,
    ) -> Result<Option<Answer<O>>, Arc<JournalError>> {
        if let Some(handle) = self.live(id)
            && let Some(answer) = handle.ask(message).await
        {
            return answer.map(Some);
        }
        match self.journal().task(id).await? {
            // Its actor has left the task to the next server.
            Some(task) if task.is_live() => Err(JournalError::Closed.into()),
            task => Ok(task.map(|task| Answer {
                standing: Standing::recorded(task),
                outcome: if_finished,
            })),
        }
    }
}

impl CancelRequest {
    /// The mode of the stop. What it leaves open is as in the task's own policy, or as in the stop that goes on:
    /// only a shutdown waits for none that takes longer.
    pub(in crate::supervisor) fn mode_for(&self, task: &Task) -> StopMode {
        let mut policy = match task.stop.as_ref().map(|stop| stop.mode) {
            Some(StopMode::Graceful(policy)) if self.cause != StopCause::Shutdown => policy,
            Some(StopMode::Graceful(_) | StopMode::Force) | None => task.spec.stop,
        };
        match self.mode {
            Some(CancelMode::Force) => return StopMode::Force,
            Some(CancelMode::Graceful {
                grace,
                signal,
                soft_grace,
            }) => {
                policy.soft_grace = soft_grace.unwrap_or(policy.soft_grace);
                policy.grace = grace.unwrap_or(policy.grace);
                policy.signal = signal.unwrap_or(policy.signal);
            }
            None => {}
        }
        StopMode::Graceful(policy)
    }
}
