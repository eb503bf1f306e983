//! Events in the journal, and the reply to the caller of Spawn. Only here a task's facts become
//! events.

use std::sync::Arc;

use super::TaskActor;
use crate::{
    journal::{Entry, JournalError},
    supervisor::registry::handle::Unrecorded,
    task::{Event, EventKind, Outcome, SpawnRequest, Task, Timestamp},
};

impl TaskActor {
    /// Records the present state as an event. If the journal refuses it, the event is kept, and recorded
    /// later.
    pub(super) async fn record(&mut self, kind: EventKind) {
        self.backlog.make_way_for(kind);
        let recorded = match self.record_backlog().await {
            Ok(()) => self.record_now(kind).await,
            Err(error) => Err(error),
        };
        if let Err(error) = recorded {
            let task = &self.life.task.id;
            tracing::error!(%task, ?kind, %error, "cannot record an event; will retry");
            self.backlog.push(kind, self.life.task.clone());
            self.show_unrecorded(self.life.task.clone());
            self.reply_to_failed_spawn();
        }
    }

    /// Records the present state as an event, or fails.
    pub(super) async fn record_now(&mut self, kind: EventKind) -> Result<(), Arc<JournalError>> {
        let entry = Entry {
            kind,
            task: self.life.task.clone(),
            request: None,
        };
        let event = self.append(entry).await?;
        self.publish(&event);
        self.reply_to_spawn(event);
        Ok(())
    }

    /// Records the creation of the task, with its request.
    pub(super) async fn record_created(
        &mut self,
        request: SpawnRequest,
    ) -> Result<Arc<Event>, JournalError> {
        let entry = Entry {
            kind: EventKind::Created,
            task: self.life.task.clone(),
            request: Some(request),
        };
        let event = self.shared.parts.journal.append(entry).await?;
        self.life.task.revision = event.revision;
        Ok(event)
    }

    /// Records the events that the journal has refused, in their order.
    pub(super) async fn record_backlog(&mut self) -> Result<(), Arc<JournalError>> {
        if self.backlog.is_empty() {
            return Ok(());
        }
        while let Some(entry) = self.backlog.first() {
            let event = self.append(entry).await?;
            self.backlog.pop();
            self.publish(&event);
            self.reply_to_spawn(event);
        }
        tracing::info!(task = %self.life.task.id, "recorded all events of the task");
        self.channels.unrecorded.send_replace(None);
        Ok(())
    }

    /// Records again what the journal has refused. While it goes on refusing, also the end of a child, a
    /// client that waits for a stop is shown that the tree is gone.
    pub(super) async fn retry_recording(&mut self) {
        if self.record_backlog().await.is_err() {
            return self.show_stop_unrecorded().await;
        }
        if let Some(error) = self.child_refusal() {
            self.backlog.refused(error);
            return self.show_stop_unrecorded().await;
        }
        self.backlog.accepted();
        self.channels.unrecorded.send_replace(None);
        if self.is_admission_refused {
            self.start_admitted().await;
        }
    }

    /// Shows that the tree of a task that is being stopped is gone, where its end is not known from a
    /// record: a shim records nothing on a disk that fails, and a child task may be one that is gone
    /// without a record.
    async fn show_stop_unrecorded(&mut self) {
        let is_shown = |unrecorded: &Option<Unrecorded>| {
            let task = unrecorded.as_ref().map(|unrecorded| &unrecorded.task);
            task.is_some_and(|task| task.has_stopped())
        };
        if self.life.task.stop.is_none() || is_shown(&self.channels.unrecorded.borrow()) {
            return;
        }
        let proof = match self.life.tree_proof() {
            Some(proof) => Some(proof),
            None => self.proof_without_record().await,
        };
        if let Some(proof) = proof
            && self.are_children_stopped()
        {
            self.show_unrecorded(self.life.task_with_proof(proof));
        }
    }

    async fn append(&mut self, entry: Entry) -> Result<Arc<Event>, Arc<JournalError>> {
        match self.shared.parts.journal.append(entry).await {
            Ok(event) => {
                self.life.task.revision = event.revision;
                // An admission that was refused is still to be tried again, and the end of a child is
                // still to be recorded.
                if !self.is_admission_refused && self.child_refusal().is_none() {
                    self.backlog.accepted();
                }
                Ok(event)
            }
            Err(error) => {
                let error = Arc::new(error);
                self.backlog.refused(Arc::clone(&error));
                Err(error)
            }
        }
    }

    /// Publishes a state that is not recorded, to callers that wait for a stop.
    pub(super) fn show_unrecorded(&self, task: Task) {
        let shown = self.backlog.error().map(|error| Unrecorded {
            task: Arc::new(task),
            error,
        });
        self.channels.unrecorded.send_replace(shown);
    }

    /// Publishes a recorded state to the holders of a handle.
    pub(super) fn publish(&self, event: &Event) {
        self.channels.state.send_replace(Arc::clone(&event.task));
    }

    /// Answers the caller of Spawn, if this event is the answer, and replaces the shim that the task
    /// has used.
    pub(super) fn reply_to_spawn(&mut self, event: Arc<Event>) {
        if let Some(reply) = self.spawn_reply.take_if(|_| event.answers_spawn()) {
            let _ = reply.send(Ok(event));
            self.stock_up_shims();
        }
    }

    /// Answers the caller of Spawn with a failed start that cannot be recorded yet: on a full disk
    /// the disk may stay full indefinitely.
    pub(super) fn reply_to_failed_spawn(&mut self) {
        let task = &self.life.task;
        let outcome = task.leader_end.as_ref().map(|end| &end.outcome);
        if !matches!(outcome, Some(Outcome::SpawnFailed(_))) {
            return;
        }
        if let Some(reply) = self.spawn_reply.take() {
            let _ = reply.send(Ok(Arc::new(Event {
                revision: task.revision,
                at: Timestamp::now(),
                kind: EventKind::Ended,
                task: Arc::new(task.clone()),
                activity: None,
            })));
        }
    }

    /// Starts a shim for the next task, after the reply for this one is on its way.
    fn stock_up_shims(&self) {
        if self.shared.parts.shims.is_short() {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                if !shared.is_shutting_down() {
                    shared.parts.shims.stock_up();
                }
            });
        }
    }
}
