//! The worker of the task: it joins, reports, delivers a result, and receives messages.

mod mailbox;

use std::sync::Arc;

use uuid::Uuid;

pub(super) use mailbox::Mailbox;

use super::TaskActor;
use crate::{
    crash,
    journal::WorkRecord,
    process::BootId,
    supervisor::{
        calls::work::{SessionNumber, WorkError, WorkMessage},
        lifecycle::{EarlierWork, Input},
    },
    task::{Moment, Progress, Report, ReportedBy, Started, StartedBy, Timestamp, WorkerResult},
};

impl EarlierWork {
    pub(super) fn of(record: Option<&WorkRecord>) -> Self {
        match record {
            None => Self::None,
            Some(record) => Self::Had {
                progress: record.progress.clone(),
            },
        }
    }
}

impl TaskActor {
    /// Starts a hosted task: its worker may work from now on.
    pub(super) async fn start_hosted(&mut self) {
        let started = Started {
            at: Moment::now(),
            by: StartedBy::Worker {
                boot: present_boot(),
            },
        };
        self.apply(Input::Started(started)).await;
    }

    /// Takes over a hosted task. Its worker has the lease to come back. Times of another boot mean nothing
    /// in this one, so such a task is lost.
    pub(super) async fn take_over_hosted(&mut self) {
        let task = &self.life.task;
        match (&task.started, &task.stop) {
            (Some(started), _)
                if started.by
                    == (StartedBy::Worker {
                        boot: present_boot(),
                    }) =>
            {
                self.is_of_this_boot = true;
            }
            (None, None) => self.start_hosted().await,
            (Some(_), _) | (None, Some(_)) => {
                let known = "the machine was restarted while it ran".to_owned();
                self.apply(Input::WorkerLost(known)).await;
            }
        }
    }

    pub(super) async fn handle_work(&mut self, message: WorkMessage) {
        // A caller that has left needs no answer.
        match message {
            WorkMessage::Joined {
                worker,
                session,
                reply,
            } => drop(reply.send(self.worker_joined(worker, session).await)),
            WorkMessage::Report {
                report,
                session,
                reply,
            } => drop(reply.send(self.report(report, session).await)),
            WorkMessage::Result {
                result,
                session,
                reply,
            } => drop(reply.send(self.worker_result(result, session).await)),
            WorkMessage::Received { number, reply } => {
                let _ = reply.send(self.messages_received(number).await);
            }
            WorkMessage::Send { message, reply } => {
                let _ = reply.send(self.put_message(message).await);
            }
            WorkMessage::Active => self.apply(Input::Activity).await,
        }
    }

    /// Notes a worker that has connected, and returns the latest number of its reports. That a task with
    /// processes has a worker is recorded: a restart of the server then counts as activity of it.
    async fn worker_joined(
        &mut self,
        worker: Uuid,
        session: SessionNumber,
    ) -> Result<u64, WorkError> {
        self.check_session(Some(session))?;
        match &self.work {
            Some(work) if work.worker == Some(worker) => return Ok(work.sequence),
            _ if self.life.task.is_hosted() => return Ok(0),
            Some(_) | None => {}
        }
        let record = WorkRecord {
            progress: self.life.task.progress.clone(),
            worker: Some(worker),
            sequence: 0,
        };
        let seq = self.life.task.seq;
        let recorded = self
            .shared
            .parts
            .journal
            .report(seq, record.clone(), Vec::new());
        // On a full disk the worker is as welcome.
        if let Err(error) = recorded.await {
            tracing::warn!(task = %self.life.task.id, %error, "cannot record a worker");
        }
        self.work = Some(Box::new(record));
        Ok(0)
    }

    /// Records a report, unless it was recorded before.
    async fn report(
        &mut self,
        report: Report,
        session: Option<SessionNumber>,
    ) -> Result<(), WorkError> {
        self.check_session(session)?;
        let earlier = self.work.as_deref();
        let (worker, sequence) = match report.by {
            ReportedBy::Call => (
                earlier.and_then(|work| work.worker),
                earlier.map_or(0, |work| work.sequence),
            ),
            ReportedBy::Worker { id, sequence } => {
                let latest = earlier.filter(|work| work.worker == Some(id));
                let latest = latest.map_or(0, |work| work.sequence);
                if sequence != 0 && sequence <= latest {
                    return Ok(());
                }
                (Some(id), sequence.max(latest))
            }
        };
        let mut progress = Progress::clone(&self.life.task.progress.clone().unwrap_or_default());
        let blocks = report.update.apply(&mut progress, Timestamp::now());
        let progress = Arc::new(progress);
        let record = WorkRecord {
            progress: Some(Arc::clone(&progress)),
            worker,
            sequence,
        };
        crash::point("work.before-report");
        let journal = &self.shared.parts.journal;
        let recorded = journal.report(self.life.task.seq, record.clone(), blocks);
        recorded.await.map_err(Arc::new)?;
        crash::point("work.report-recorded");
        self.work = Some(Box::new(record));
        self.apply(Input::Progress(progress)).await;
        Ok(())
    }

    /// Records the result. The same one again is answered as the first.
    async fn worker_result(
        &mut self,
        result: WorkerResult,
        session: SessionNumber,
    ) -> Result<(), WorkError> {
        let task = &self.life.task;
        match &task.result {
            Some(delivered) if delivered.is_same(&result) => return Ok(()),
            Some(_) => return Err(WorkError::ResultDelivered(task.id.clone())),
            None => {}
        }
        self.check_session(Some(session))?;
        crash::point("work.before-result");
        let input = Input::WorkerResult(result);
        match task.is_hosted() {
            // It ends the task, recorded or not.
            true => self.apply(input).await,
            false => self.apply_or_undo(input).await?,
        }
        crash::point("work.result-recorded");
        Ok(())
    }

    /// Fails if the task is finished, or another worker has the place of this one.
    fn check_session(&self, session: Option<SessionNumber>) -> Result<(), WorkError> {
        if self.life.is_tree_gone() {
            return Err(WorkError::Finished(Arc::new(self.life.task.clone())));
        }
        match session {
            Some(session) if !self.channels.worker.is_current(session) => {
                Err(WorkError::Replaced(self.life.task.id.clone()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The record of the task's worker, after a panic. Without it a report may be recorded twice.
    pub(super) async fn recorded_work(&self) -> Option<WorkRecord> {
        let journal = &self.shared.parts.journal;
        let work = journal.work_of(self.life.task.seq).await;
        work.unwrap_or_else(|error| {
            tracing::error!(task = %self.life.task.id, %error, "cannot read the task's progress");
            None
        })
    }
}

/// The present boot. Without an id of it every boot is the same: that is the safe side for a task that
/// has no process.
fn present_boot() -> Uuid {
    BootId::current().map_or(Uuid::nil(), |boot| Uuid::from_bytes(boot.0))
}
