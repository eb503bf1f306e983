//! Events in the journal, and the reply to the caller of Spawn. Only here a task's facts become
//! events.

use std::sync::Arc;

use super::TaskActor;
use crate::{
    crash,
    journal::{Entry, JournalError},
    task::{Event, EventKind, Outcome, SpawnRequest, Timestamp},
};

impl TaskActor {
    /// Records the present state as an event.
    pub(super) async fn record(&mut self, kind: EventKind) -> Result<Arc<Event>, JournalError> {
        self.append(Entry {
            kind,
            task: self.life.task.clone(),
            request: None,
        })
        .await
    }

    /// Records the creation of the task, with its request.
    pub(super) async fn record_created(
        &mut self,
        request: SpawnRequest,
    ) -> Result<Arc<Event>, JournalError> {
        self.append(Entry {
            kind: EventKind::Created,
            task: self.life.task.clone(),
            request: Some(request),
        })
        .await
    }

    async fn append(&mut self, entry: Entry) -> Result<Arc<Event>, JournalError> {
        let event = self.shared.parts.journal.append(entry).await?;
        self.life.task.revision = event.revision;
        Ok(event)
    }

    /// Records the end. The tree is empty, so the admission is freed first: a client that sees the
    /// end can take the slot. Queued tasks that were admitted because of it start after the end.
    pub(super) async fn record_end(&mut self) -> Result<(), JournalError> {
        let admitted = self.shared.registry.free_admission(&self.life.task.id);
        let recorded = self.record(EventKind::Ended).await;
        crash::point("queue.freed");
        admitted.notify();
        let event = recorded?;
        self.publish(&event);
        self.reply_to_spawn(event);
        Ok(())
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
