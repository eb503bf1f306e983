//! The calls of workers, and of the senders of messages to them.
//!
//! ```text
//!  worker ── signs of life ──> link <── looks, when a lease or a silence is due ── actor
//!         ── reports, result, receipts ─────────────────────────────> inbox ──────^
//! ```
//!
//! The actor orders everything that is recorded. What a stream asks of it is asked in a future of its
//! own: a client can stop reading, and its stream is then not polled.

mod link;

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;
use uuid::Uuid;

pub(in crate::supervisor) use link::{SessionNumber, WorkerLink};
pub(crate) use link::{Sign, TakeOver};

use crate::supervisor::{Handle, Supervisor, lifecycle::Connection, task_actor::Message};
use crate::{
    journal::{Journal, JournalError},
    task::{
        MessageDraft, Monotonic, ProgressUpdate, Report, ReportedBy, Task, TaskId, TaskMessage,
        Timestamp, WorkerResult,
    },
};

/// The reason why a worker or a message is refused.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum WorkError {
    #[error("task {} is finished", .0.id)]
    Finished(Arc<Task>),
    #[error("another worker is connected to task {0}: it has to leave, or be taken over")]
    Connected(TaskId),
    #[error("another worker has taken the place of this one at task {0}")]
    Replaced(TaskId),
    #[error("task {0} has another result already")]
    ResultDelivered(TaskId),
    #[error(
        "the mailbox of task {id} is full: {waiting} of {max} messages and {waiting_bytes} of \
         {max_bytes} bytes wait for its worker"
    )]
    MailboxFull {
        id: TaskId,
        waiting: usize,
        max: usize,
        waiting_bytes: usize,
        max_bytes: usize,
    },
    #[error("the message id {message_id:?} belongs to another text")]
    MessageIdReused { id: TaskId, message_id: String },
    #[error("cannot record it")]
    Journal(#[from] Arc<JournalError>),
    #[error("the server is shutting down")]
    ShuttingDown,
}

/// The sender on which an actor answers a worker.
pub(in crate::supervisor) type WorkReply<T> = oneshot::Sender<Result<T, WorkError>>;

/// A request of a worker to the actor of its task, or of a client to the worker.
#[derive(Debug)]
pub(in crate::supervisor) enum WorkMessage {
    /// A worker has connected. The answer is the latest number of its reports.
    Joined {
        worker: Uuid,
        session: SessionNumber,
        reply: WorkReply<u64>,
    },
    Report {
        report: Report,
        /// The connection, of a connected worker.
        session: Option<SessionNumber>,
        reply: WorkReply<()>,
    },
    Result {
        result: WorkerResult,
        session: SessionNumber,
        reply: WorkReply<()>,
    },
    /// All messages up to this number are received.
    Received { number: u64, reply: WorkReply<()> },
    /// Put a message into the mailbox. The answer is its number.
    Send {
        message: MessageDraft,
        reply: WorkReply<u64>,
    },
    /// The worker of a stale task has shown activity.
    Active,
}

/// A connected worker, until it is dropped.
#[derive(Debug)]
pub(crate) struct WorkerSession {
    handle: Handle,
    worker: Uuid,
    session: SessionNumber,
}

impl Drop for WorkerSession {
    fn drop(&mut self) {
        self.handle.worker.leave(self.session);
    }
}

/// The presence of a worker at a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Presence {
    pub(crate) is_connected: bool,
    /// The time of its latest message to this server.
    pub(crate) heard: Option<Timestamp>,
}

impl Handle {
    pub(crate) fn presence(&self) -> Presence {
        let seen = self.worker.look();
        let ago = |at| Monotonic::now().since(at);
        let wall =
            |ago: Duration| Timestamp(Timestamp::now().0.saturating_sub(ago.as_micros() as u64));
        Presence {
            is_connected: seen.connection == Connection::Connected,
            heard: seen.heard.map(ago).map(wall),
        }
    }

    /// Connects a worker. Returns the connection, and the latest number of the worker's reports.
    pub(crate) async fn join(
        &self,
        worker: Option<Uuid>,
        take_over: TakeOver,
    ) -> Result<(WorkerSession, u64), WorkError> {
        let joined = self.worker.join(worker, take_over);
        let (worker, session) = joined.map_err(|_| WorkError::Connected(self.task().id.clone()))?;
        let connected = WorkerSession {
            handle: self.clone(),
            worker,
            session,
        };
        let message = move |reply| WorkMessage::Joined {
            worker,
            session,
            reply,
        };
        let sequence = self.ask_work_apart(message).await?;
        Ok((connected, sequence))
    }

    /// Asks the actor; a request that an actor's failure has interrupted is sent again.
    async fn ask_work<T>(
        &self,
        message: impl Fn(WorkReply<T>) -> WorkMessage,
    ) -> Result<T, WorkError> {
        let answer = self.ask_for(|reply| Message::Work(message(reply))).await;
        answer.unwrap_or_else(|| {
            let task = self.task();
            Err(match task.is_live() {
                true => WorkError::ShuttingDown,
                false => WorkError::Finished(task),
            })
        })
    }

    /// Asks the actor in a future of its own, which goes on if this one is polled no more.
    async fn ask_work_apart<T: Send + 'static>(
        &self,
        message: impl Fn(WorkReply<T>) -> WorkMessage + Send + Sync + 'static,
    ) -> Result<T, WorkError> {
        let this = self.clone();
        let asked = tokio::spawn(async move { this.ask_work(message).await });
        asked.await.unwrap_or(Err(WorkError::ShuttingDown))
    }
}

impl WorkerSession {
    pub(crate) fn id(&self) -> Uuid {
        self.worker
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Fails once another connection has taken the place of this one.
    pub(crate) fn check(&self) -> Result<(), WorkError> {
        match self.handle.worker.is_current(self.session) {
            true => Ok(()),
            false => Err(WorkError::Replaced(self.handle.task().id.clone())),
        }
    }

    /// Notes a message of the worker.
    pub(crate) fn note(&self, sign: Sign) {
        self.handle.worker.note(sign);
        if sign == Sign::Activity && self.handle.task().stale.is_some() {
            let handle = self.handle.clone();
            tokio::spawn(async move { handle.send(Message::Work(WorkMessage::Active)).await });
        }
    }

    /// Makes a report durable.
    pub(crate) async fn report(
        &self,
        update: ProgressUpdate,
        sequence: u64,
    ) -> Result<(), WorkError> {
        let id = self.worker;
        let by = ReportedBy::Worker { id, sequence };
        let (report, session) = (Report { update, by }, Some(self.session));
        let message = move |reply| WorkMessage::Report {
            report: report.clone(),
            session,
            reply,
        };
        self.handle.ask_work_apart(message).await
    }

    /// Makes the result durable.
    pub(crate) async fn deliver(&self, result: WorkerResult) -> Result<(), WorkError> {
        let session = self.session;
        let message = move |reply| WorkMessage::Result {
            result: result.clone(),
            session,
            reply,
        };
        self.handle.ask_work_apart(message).await
    }

    /// Makes it durable that all messages up to a number are received.
    pub(crate) async fn received(&self, number: u64) -> Result<(), WorkError> {
        let message = move |reply| WorkMessage::Received { number, reply };
        self.handle.ask_work_apart(message).await
    }

    /// Reports whether a message beyond a number was put since the server began.
    pub(crate) fn has_messages_after(&self, number: u64) -> bool {
        self.handle.worker.newest_message() > number
    }

    /// The next messages after a number that were not received.
    pub(crate) async fn messages_after(
        &self,
        journal: &Journal,
        number: u64,
        limit: usize,
    ) -> Result<Vec<TaskMessage>, JournalError> {
        let seq = self.handle.task().seq;
        journal.messages_after(seq, number, limit).await
    }

    /// Waits until the task changes, a message beyond a number arrives, or the place is taken. `known` is
    /// the state that the caller has acted on.
    pub(crate) async fn news(&self, known: &Arc<Task>, received: u64) {
        let link = &self.handle.worker;
        let changed = link.changed();
        tokio::pin!(changed);
        changed.as_mut().enable();
        if self.has_messages_after(received) || self.check().is_err() {
            return;
        }
        tokio::select! {
            () = changed => {}
            () = self.handle.changed_from(known) => {}
        }
    }
}

impl Supervisor {
    /// Makes a report of a caller without a connection durable. Returns the task after it.
    pub(crate) async fn report(
        &self,
        id: &TaskId,
        update: Option<ProgressUpdate>,
        listens: Listens,
    ) -> Result<Option<Arc<Task>>, WorkError> {
        let Some(handle) = self.live(id) else {
            return self.finished(id).await;
        };
        match listens {
            Listens::Yes => handle.worker.note_question(),
            Listens::No => {}
        }
        if let Some(update) = update {
            handle.worker.note(Sign::Activity);
            let by = ReportedBy::Call;
            let report = Report { update, by };
            let message = |reply| WorkMessage::Report {
                report: report.clone(),
                session: None,
                reply,
            };
            handle.ask_work(message).await?;
        }
        Ok(Some(handle.task()))
    }

    /// Puts a message into the mailbox of a task, and returns its number; `None` if there is no such task.
    pub(crate) async fn send_message(
        &self,
        id: &TaskId,
        message: MessageDraft,
    ) -> Result<Option<u64>, WorkError> {
        let Some(handle) = self.live(id) else {
            return self.finished(id).await;
        };
        let message = |reply| WorkMessage::Send {
            message: message.clone(),
            reply,
        };
        handle.ask_work(message).await.map(Some)
    }

    /// Fails for a finished task; `None` if there is no such task.
    async fn finished<T>(&self, id: &TaskId) -> Result<Option<T>, WorkError> {
        match self.journal().task(id).await.map_err(Arc::new)? {
            Some(task) if task.is_live() => Err(WorkError::ShuttingDown),
            Some(task) => Err(WorkError::Finished(task)),
            None => Ok(None),
        }
    }
}

/// The promise of a caller to ask again whether to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Listens {
    Yes,
    No,
}
