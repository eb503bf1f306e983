//! A worker that has joined a live task.

use std::sync::Arc;

use heeler_proto::v1::{self, work_response::Item as Out};

use super::{Incoming, input::Input, told::Told};
use crate::{
    service::{
        Service,
        transport::Call,
        wire::{failure, refusal::Refusal, work},
    },
    supervisor::{Sign, WorkError, WorkerSession},
    task::{ProgressUpdate, Task},
};

/// Reports that are recorded together, if they have arrived.
const REPORTS: usize = 256;
/// Messages of the mailbox that are read at a time.
const MESSAGES: usize = 8;

pub(super) struct Working {
    session: WorkerSession,
    told: Told,
    /// The latest number of a report.
    sequence: u64,
    mailbox: Mailbox,
    /// A message that was read ahead.
    next: Option<Result<Input, Refusal>>,
}

/// The place of the worker in its mailbox.
#[derive(Debug, Clone, Copy)]
struct Mailbox {
    /// The latest message that was sent.
    sent: u64,
    /// Messages of an earlier stream or server may wait.
    is_new: bool,
}

/// The effect of waiting.
enum Waited {
    /// There may be news for the worker.
    News,
    Input(Input),
}

impl Working {
    pub(super) fn new(session: WorkerSession, task: &Task, sequence: u64) -> Self {
        Self {
            session,
            told: Told::of(task),
            sequence,
            mailbox: Mailbox {
                sent: 0,
                is_new: true,
            },
            next: None,
        }
    }

    /// Waits for something to send; nothing, if the worker has closed its side.
    pub(super) async fn step(
        &mut self,
        service: &Service,
        incoming: &mut Incoming,
        call: &Call,
    ) -> Result<Vec<Out>, Refusal> {
        loop {
            self.session.check()?;
            let task = self.session.handle().task();
            let news = self.told.news(&task);
            if !news.is_empty() {
                return Ok(news);
            }
            if self.has_mail() {
                let messages = Box::pin(self.messages(service, call)).await?;
                if !messages.is_empty() {
                    return Ok(messages);
                }
            }
            let answer = match self.wait(service, incoming, &task).await? {
                Waited::News => None,
                Waited::Input(Input::Closed) => return Ok(Vec::new()),
                Waited::Input(input) => Box::pin(self.handle(input, incoming)).await?,
            };
            if let Some(answer) = answer {
                return Ok(vec![answer]);
            }
        }
    }

    async fn wait(
        &mut self,
        service: &Service,
        incoming: &mut Incoming,
        known: &Arc<Task>,
    ) -> Result<Waited, Refusal> {
        if let Some(next) = self.next.take() {
            return next.map(Waited::Input);
        }
        tokio::select! {
            biased;
            () = service.closing.begun() => Err(Refusal::shutting_down()),
            () = self.session.news(known, self.mailbox.sent) => Ok(Waited::News),
            input = Input::next(incoming) => input.map(Waited::Input),
        }
    }

    /// Handles a message, and returns the answer to it. What comes after the end of the task has no effect:
    /// the worker is about to be told of the end.
    async fn handle(
        &mut self,
        input: Input,
        incoming: &mut Incoming,
    ) -> Result<Option<Out>, Refusal> {
        self.session.note(Sign::Presence);
        let handled = match input {
            Input::Progress { update, sequence } => {
                self.session.note(Sign::Activity);
                return self.report(update, sequence, incoming).await;
            }
            Input::Heartbeat(sign) => {
                self.session.note(sign);
                return Ok(None);
            }
            Input::Result { result, sequence } => {
                let delivered = self.session.deliver(result).await;
                self.sequence = self.sequence.max(sequence);
                delivered.map(|()| acknowledged(sequence, None))
            }
            Input::Receipt(number) => self.session.received(number).await.map(|()| None),
            Input::Closed => Ok(None),
        };
        unless_finished(handled)
    }

    /// Records a report, together with those that have arrived after it.
    async fn report(
        &mut self,
        update: ProgressUpdate,
        sequence: u64,
        incoming: &mut Incoming,
    ) -> Result<Option<Out>, Refusal> {
        let mut latest = sequence;
        let mut merged = self.unless_repeated(update, sequence);
        for _ in 1..REPORTS {
            match Input::arrived(incoming).await {
                Some(Ok(Input::Progress { update, sequence })) => {
                    latest = latest.max(sequence);
                    let update = self.unless_repeated(update, sequence);
                    merged = merge(merged, update);
                }
                later => {
                    self.next = later;
                    break;
                }
            }
        }
        let recorded = match merged {
            Some(update) => self.session.report(update, latest).await,
            None => Ok(()),
        };
        unless_finished(match recorded {
            Ok(()) => Ok(acknowledged(latest, None)),
            Err(WorkError::Journal(error)) => {
                Ok(acknowledged(latest, Some(failure::unrecorded(&error))))
            }
            Err(error) => Err(error),
        })
    }

    /// The update, unless it was recorded before.
    fn unless_repeated(&mut self, update: ProgressUpdate, sequence: u64) -> Option<ProgressUpdate> {
        let is_repeated = sequence != 0 && sequence <= self.sequence;
        self.sequence = self.sequence.max(sequence);
        (!is_repeated).then_some(update)
    }

    /// True if messages may wait that were not sent.
    fn has_mail(&self) -> bool {
        self.mailbox.is_new || self.session.has_messages_after(self.mailbox.sent)
    }

    /// The next messages of the mailbox.
    async fn messages(&mut self, service: &Service, call: &Call) -> Result<Vec<Out>, Refusal> {
        let Mailbox { sent, is_new } = self.mailbox;
        let limit = match call.hold(0) {
            true => MESSAGES,
            // The client reads too slowly.
            false => 1,
        };
        let read = self.session.messages_after(&service.journal, sent, limit);
        let messages = read.await?;
        self.mailbox = Mailbox {
            sent: messages.last().map_or(sent, |last| last.number),
            is_new: is_new && !messages.is_empty(),
        };
        let shown = messages.into_iter().map(work::show_message);
        Ok(shown.map(Out::Message).collect())
    }
}

fn merge(earlier: Option<ProgressUpdate>, later: Option<ProgressUpdate>) -> Option<ProgressUpdate> {
    match (earlier, later) {
        (Some(mut merged), Some(later)) => {
            merged.merge(later);
            Some(merged)
        }
        (earlier, later) => earlier.or(later),
    }
}

/// A message without a number is not acknowledged.
fn acknowledged(sequence: u64, unrecorded: Option<v1::Unrecorded>) -> Option<Out> {
    let acknowledged = v1::WorkAcknowledged {
        sequence,
        unrecorded,
    };
    (sequence != 0).then_some(Out::Acknowledged(acknowledged))
}

fn unless_finished(handled: Result<Option<Out>, WorkError>) -> Result<Option<Out>, Refusal> {
    match handled {
        Err(WorkError::Finished(_)) => Ok(None),
        handled => Ok(handled?),
    }
}
