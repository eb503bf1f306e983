//! Input to a task: the calls, and the rules by which a write is carried out or refused.
//!
//! The count of bytes and the note with the writers are in the shim, which outlives the server. An actor
//! gives the shim no more bytes than it has room for, so a write that waits for room waits here.

mod rules;
mod writers;

use std::{sync::Arc, time::Duration};

use prost::bytes::Bytes;
use tokio::{sync::oneshot, time::Instant};

pub(in crate::supervisor) use rules::{Decision, Given, decide};
pub(crate) use writers::LONGEST_WRITER;
pub(in crate::supervisor) use writers::Writers;

use crate::supervisor::{Supervisor, registry::handle::Handle, task_actor::Message};
use crate::{
    journal::JournalError,
    task::{Task, TaskId, TerminalSize},
};

/// The time that a shim has to take a write.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// A write.
#[derive(Debug, Clone, Default)]
pub(crate) struct InputWrite {
    /// Empty: a writer without an id.
    pub(crate) writer: String,
    /// `None`: the end.
    pub(crate) offset: Option<u64>,
    pub(crate) data: Bytes,
    pub(crate) end: InputEnd,
    pub(crate) hold: InputHold,
}

/// The state in which a write leaves the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InputEnd {
    #[default]
    Open,
    Close,
}

/// The claim of a writer on the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InputHold {
    #[default]
    IfFree,
    TakeOver,
}

impl InputWrite {
    /// True if it only asks for the state.
    fn changes_nothing(&self) -> bool {
        self.data.is_empty() && self.end == InputEnd::Open && self.hold == InputHold::IfFree
    }
}

/// The state of the input after a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputStanding {
    /// The number of bytes that the task was given.
    pub(crate) offset: u64,
    /// The number of bytes of the write that the task has.
    pub(crate) taken: usize,
    pub(crate) is_closed: bool,
    /// The writer that has the input; empty for none.
    pub(crate) writer: String,
    /// The size of the terminal, if there is one and it is known.
    pub(crate) size: Option<TerminalSize>,
}

/// The reason why input is refused.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum InputError {
    #[error("task {} is finished", .0.id)]
    Finished(Arc<Task>),
    #[error("task {0} has no input: its specification has neither an input policy nor a terminal")]
    Missing(TaskId),
    #[error("the input of task {id} is closed after {offset} bytes: {}", by.cause())]
    Closed {
        id: TaskId,
        offset: u64,
        by: ClosedBy,
    },
    #[error("the write begins beyond the end of the input of task {id}, which is at {expected}")]
    Gap { id: TaskId, expected: u64 },
    #[error("the writer {writer:?} has the input of task {id}: it has to be taken over")]
    Held { id: TaskId, writer: String },
    #[error("another writer has taken over the input of task {id}")]
    TakenOver { id: TaskId, writer: String },
    #[error("task {0} has no terminal")]
    NoTerminal(TaskId),
    #[error("the shim of task {0} does not answer; try again")]
    NotAnswered(TaskId),
    #[error("cannot read the task")]
    Journal(#[from] Arc<JournalError>),
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// The party that has closed an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClosedBy {
    Writer,
    /// No process of the task reads it any more.
    Task,
}

impl ClosedBy {
    fn cause(self) -> &'static str {
        match self {
            Self::Writer => "a writer has closed it",
            Self::Task => "no process of the task reads it",
        }
    }
}

/// The sender on which an actor answers.
pub(in crate::supervisor) type InputReply<T> = oneshot::Sender<Result<T, InputError>>;

impl Supervisor {
    /// Writes to the input of a task, and waits for room for all of the data for at most `wait`; `None` if there
    /// is no such task.
    pub(crate) async fn write_input(
        &self,
        id: &TaskId,
        write: InputWrite,
        wait: Duration,
    ) -> Result<Option<InputStanding>, InputError> {
        match self.live(id) {
            Some(handle) => handle.write_input(id, write, wait).await.map(Some),
            None => self.refuse_finished(id).await,
        }
    }

    /// Changes the size of a task's terminal; `None` if there is no such task.
    pub(crate) async fn resize_terminal(
        &self,
        id: &TaskId,
        size: TerminalSize,
    ) -> Result<Option<()>, InputError> {
        let message = |reply| Message::ResizeTerminal { size, reply };
        match self.live(id) {
            Some(handle) => handle.ask_input(id, message).await.map(Some),
            None => self.refuse_finished(id).await,
        }
    }

    async fn refuse_finished<T>(&self, id: &TaskId) -> Result<Option<T>, InputError> {
        match self.journal().task(id).await.map_err(Arc::new)? {
            // Its actor has left the task to the next server.
            Some(task) if task.is_live() => Err(InputError::ShuttingDown),
            Some(task) => Err(InputError::Finished(task)),
            None => Ok(None),
        }
    }
}

impl Handle {
    /// The state of the task's input, as far as it is known.
    pub(crate) async fn input_standing(&self, id: &TaskId) -> Result<InputStanding, InputError> {
        let message = |reply| Message::WriteInput {
            write: InputWrite::default(),
            reply,
        };
        self.ask_input(id, message).await
    }

    async fn write_input(
        &self,
        id: &TaskId,
        mut write: InputWrite,
        wait: Duration,
    ) -> Result<InputStanding, InputError> {
        let deadline = Instant::now() + wait;
        let mut taken = 0;
        loop {
            let change = self.input_change();
            let message = |reply| Message::WriteInput {
                write: write.clone(),
                reply,
            };
            let mut standing = self.ask_input(id, message).await?;
            let _ = write.data.split_to(standing.taken);
            taken += standing.taken;
            // Without an offset the rest comes behind what others have written meanwhile.
            write.offset = write.offset.map(|offset| offset + standing.taken as u64);
            standing.taken = taken;
            let is_done =
                write.data.is_empty() && (write.end == InputEnd::Open || standing.is_closed);
            if is_done || Instant::now() >= deadline {
                return Ok(standing);
            }
            // Taken over, or refused, by the first turn.
            write.hold = InputHold::IfFree;
            tokio::select! {
                () = change => {}
                _ = self.finished() => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    async fn ask_input<T>(
        &self,
        id: &TaskId,
        message: impl Fn(InputReply<T>) -> Message,
    ) -> Result<T, InputError> {
        let asked = tokio::time::timeout(ANSWER_WITHIN, self.ask_for(message)).await;
        let Ok(answer) = asked else {
            return Err(InputError::NotAnswered(id.clone()));
        };
        answer.unwrap_or_else(|| {
            let task = self.task();
            Err(match task.is_live() {
                true => InputError::ShuttingDown,
                false => InputError::Finished(task),
            })
        })
    }
}
