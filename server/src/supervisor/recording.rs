//! What an actor makes durable, and what it tells with it: the only place at which a task's facts become
//! events.

use std::sync::Arc;

use super::{actor::TaskActor, tails};
use crate::{
    crash,
    journal::{Entry, JournalError},
    task::{Event, EventKind, Outcome, SpawnRequest, Timestamp},
};

impl TaskActor {
    /// Makes the present state durable; only then is it told.
    pub(super) async fn record(
        &mut self,
        kind: EventKind,
        request: Option<SpawnRequest>,
    ) -> Result<(), JournalError> {
        // Its tree is gone, so its place is free: whoever sees the end may take it. Who has waited for
        // that begins after it.
        let turns =
            (kind == EventKind::Ended).then(|| self.shared.registry.vacate(&self.life.task.id));
        let entry = Entry {
            kind,
            task: self.life.task.clone(),
            request,
        };
        let appended = self.shared.parts.journal.append(entry).await;
        if let Some(turns) = turns {
            crash::point("queue.freed");
            turns.tell();
        }
        let event = appended?;
        self.life.task.revision = event.revision;
        self.ends.state.send_replace(Arc::clone(&event.task));
        if let Some(newborn) = self.newborn.take_if(|_| event.answers_spawn()) {
            let _ = newborn.send(Ok(event));
            self.stock_up();
        }
        Ok(())
    }

    /// Sees to it that the next task finds a shim, once the answer for this one is on its way.
    fn stock_up(&self) {
        if self.shared.parts.shims.is_short() {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                if !*shared.leaving.borrow() {
                    shared.parts.shims.stock_up();
                }
            });
        }
    }

    /// When there was output last, and how much there is now. What cannot be looked at is not silence.
    pub(super) fn last_output(&self) -> (Timestamp, u64) {
        match tails::read_tail(&self.shared.parts.task_dir, &self.life.task, 1) {
            Ok(tail) => {
                let tail = tail.unwrap_or_default();
                let last = tail.chunks.last().map(|chunk| chunk.at);
                (last.unwrap_or_default(), tail.end)
            }
            Err(error) => {
                tracing::warn!(task = %self.life.task.id, %error, "could not read the output");
                (Timestamp::now(), self.life.task.output_bytes)
            }
        }
    }

    /// A start that has failed is told to whoever waits for it, though it cannot be recorded yet: on a
    /// full disk that may take for ever.
    pub(super) fn tell_failed_start(&mut self) {
        let task = &self.life.task;
        let outcome = task.leader_end.as_ref().map(|end| &end.outcome);
        if !matches!(outcome, Some(Outcome::SpawnFailed(_))) {
            return;
        }
        if let Some(newborn) = self.newborn.take() {
            let _ = newborn.send(Ok(Arc::new(Event {
                revision: task.revision,
                at: Timestamp::now(),
                kind: EventKind::Ended,
                task: Arc::new(task.clone()),
                activity: None,
            })));
        }
    }
}
