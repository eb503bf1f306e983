//! What an actor makes durable, and what it tells with it: the only place at which a task's facts become
//! events.

use std::{io, sync::Arc};

use super::actor::TaskActor;
use crate::{
    crash,
    journal::{Entry, JournalError},
    task::{Event, EventKind, Outcome, SpawnRequest, Tail, Timestamp},
};

/// How much of the output's end an end is told with.
const TAIL_BYTES: usize = 4096;

impl TaskActor {
    /// Makes the present state durable; only then is it told.
    pub(super) async fn record(
        &mut self,
        kind: EventKind,
        request: Option<SpawnRequest>,
    ) -> Result<(), JournalError> {
        let tail = (kind == EventKind::Ended).then(|| self.tail());
        // Its tree is gone, so its place is free: whoever sees the end may take it. Who has waited for
        // that begins after it.
        let turns =
            (kind == EventKind::Ended).then(|| self.shared.registry.vacate(&self.life.task.id));
        let entry = Entry {
            kind,
            task: self.life.task.clone(),
            tail,
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
        let answers = match kind {
            EventKind::Started | EventKind::Ended => true,
            EventKind::Created => event.task.is_answered_waiting(),
            EventKind::Admitted
            | EventKind::Stopping
            | EventKind::LeaderExited
            | EventKind::Detached
            | EventKind::Stale
            | EventKind::Active
            | EventKind::KillOverdue
            | EventKind::Removed => false,
        };
        if let Some(newborn) = self.newborn.take_if(|_| answers) {
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

    fn tail(&self) -> Tail {
        match self.life.task.output_bytes {
            0 => Tail::default(),
            _ => self.output_tail(TAIL_BYTES).unwrap_or_else(|error| {
                self.unreadable(&error);
                Tail::default()
            }),
        }
    }

    /// When there was output last, and how much there is now. What cannot be looked at is not silence.
    pub(super) fn last_output(&self) -> (Timestamp, u64) {
        match self.output_tail(1) {
            Ok(tail) => {
                let last = tail.chunks.last().map(|chunk| chunk.at);
                (last.unwrap_or_default(), tail.end)
            }
            Err(error) => {
                self.unreadable(&error);
                (Timestamp::now(), self.life.task.output_bytes)
            }
        }
    }

    fn output_tail(&self, bytes: usize) -> io::Result<Tail> {
        match self.shared.parts.task_dir.open(&self.life.task.id)? {
            Some(file) if file.is_of(self.life.task.uid)? => file.tail(bytes),
            Some(_) | None => Ok(Tail::default()),
        }
    }

    fn unreadable(&self, error: &io::Error) {
        tracing::warn!(task = %self.life.task.id, %error, "its output cannot be read");
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
                tail: None,
                activity: None,
            })));
        }
    }
}
