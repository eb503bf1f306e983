//! The pruner: keeps finished tasks and events within the limits.
//!
//! It removes the tasks that ended first; a task whose end was not delivered goes only when there is
//! no other. It works in small steps with pauses, since a bulk deletion of files slows down every later
//! creation, and sleeps while there is nothing to do.

use std::{sync::Arc, time::Duration};

use tokio::sync::watch;

use super::{
    limits::{Excess, KEEP_FOREGROUND, expired_foreground},
    log_failure,
    removal::Remover,
};
use crate::{
    config::Retention,
    journal::{Candidate, FinishedClass, Journal, JournalError},
    supervisor::{JobGuard, Shared},
    task::{Revision, Timestamp},
};

/// The pause between two steps while there is more to do.
const PAUSE: Duration = Duration::from_millis(100);
/// The time in which events accumulate before the next look: a busy server is looked at once in it.
const ACCUMULATE: Duration = Duration::from_secs(1);
/// The pause after an error.
const RETRY: Duration = Duration::from_secs(5);
/// The bounds of the number of tasks in one step: at most a thousand a second, which is more than can
/// be started.
const FEWEST: u64 = 10;
const MOST: u64 = 100;
/// One step takes this fraction of the excess, within the bounds.
const FRACTION: u64 = 100;
/// The number of event batches in one step, of some hundred events each.
const EVENT_BATCHES: usize = 4;
/// The longest interval of looks at the age of tasks.
const AGE_CHECK: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    MoreToDo,
    Done,
}

impl Progress {
    /// Full steps are followed by another one.
    fn of_step(removed: usize, most: usize) -> Self {
        match removed < most {
            true => Self::Done,
            false => Self::MoreToDo,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Done, Self::Done) => Self::Done,
            (Self::MoreToDo, _) | (_, Self::MoreToDo) => Self::MoreToDo,
        }
    }
}

#[derive(Debug)]
struct Pruner {
    shared: Arc<Shared>,
    limits: Retention,
    remover: Remover,
}

/// Prunes until the server shuts down.
pub(super) async fn run(job: JobGuard, limits: Retention) {
    let pruner = Pruner {
        shared: Arc::clone(&job.0),
        limits,
        remover: Remover::new(Arc::clone(&job.0)),
    };
    pruner.run().await;
}

impl Pruner {
    /// A step is never cut short: the files of removed tasks are deleted too.
    async fn run(mut self) {
        let mut head = self.journal().watch();
        let mut is_counted = false;
        loop {
            head.mark_unchanged();
            let progress = match is_counted {
                true => self.step().await,
                false => self
                    .journal()
                    .count_finished()
                    .await
                    .map(|()| Progress::MoreToDo),
            };
            is_counted |= progress.is_ok();
            tokio::select! {
                biased;
                () = self.shared.shutdown_begun() => break,
                () = self.pause(progress, &mut head) => {}
            }
        }
        if let Err(error) = self.journal().write_delivered().await {
            tracing::warn!(%error, "could not persist delivery marks");
        }
    }

    async fn pause(
        &self,
        progress: Result<Progress, JournalError>,
        head: &mut watch::Receiver<Revision>,
    ) {
        match progress {
            Ok(Progress::MoreToDo) => tokio::time::sleep(PAUSE).await,
            Ok(Progress::Done) => {
                let finished = self.journal().finished_totals().stored_bytes;
                let calm = async {
                    self.wait_for_change(head).await;
                    tokio::time::sleep(ACCUMULATE).await;
                };
                tokio::select! {
                    () = calm => {}
                    () = self.shared.output_budget.exceeded(finished) => {}
                }
            }
            Err(error) => {
                log_failure(&error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Waits for anything that may put the journal beyond its limits.
    async fn wait_for_change(&self, head: &mut watch::Receiver<Revision>) {
        let age_check = self.limits.age.map_or(AGE_CHECK, |age| age.min(AGE_CHECK));
        tokio::select! {
            // The journal has the sender, so the channel cannot close.
            _ = head.changed() => {}
            () = self.journal().delivered_noted() => {}
            () = tokio::time::sleep(age_check) => {}
        }
    }

    async fn step(&mut self) -> Result<Progress, JournalError> {
        self.journal().write_delivered().await?;
        let foreground = self.prune_foreground().await?;
        let tasks = self.prune_tasks().await?;
        let events = self.prune_events().await?;
        Ok(foreground.and(tasks).and(events))
    }

    /// Tasks that finished in the foreground are kept only briefly after their end was delivered.
    async fn prune_foreground(&mut self) -> Result<Progress, JournalError> {
        let most = MOST as usize;
        let journal = self.journal();
        let beyond = journal.delivered_foreground_before(KEEP_FOREGROUND).await?;
        let oldest = self.oldest(FinishedClass::DeliveredForeground, most);
        let candidates = self.remover.removable(oldest.await?);
        let expired = expired_foreground(&candidates, beyond, Timestamp::now());
        let progress = Progress::of_step(expired.len(), most);
        self.remover.remove(expired).await?;
        Ok(progress)
    }

    async fn prune_tasks(&mut self) -> Result<Progress, JournalError> {
        let finished = self.journal().finished_totals();
        let too_much = self.shared.output_budget.excess(finished.stored_bytes);
        let excess = Excess::of(finished, &self.limits, too_much);
        if excess.is_none() && self.limits.age.is_none() {
            return Ok(Progress::Done);
        }
        let most = match too_much {
            0 => (excess.tasks / FRACTION).clamp(FEWEST, MOST) as usize,
            _ => MOST as usize,
        };
        let delivered = self.oldest(FinishedClass::Delivered, most).await?;
        let delivered = self.remover.removable(delivered);
        let mut chosen = excess.choose(&delivered, self.limits.age, most);
        if chosen.is_empty() && !excess.is_none() {
            let finished = self.oldest(FinishedClass::All, most).await?;
            chosen = excess.choose(&self.remover.removable(finished), None, most);
        }
        if chosen.is_empty() && too_much > 0 {
            self.limit_live_output(finished.stored_bytes);
        }
        let progress = Progress::of_step(chosen.len(), most);
        self.remover.remove(chosen).await?;
        Ok(progress)
    }

    /// Tells the live tasks with the most output to drop their oldest. No finished task is left to make
    /// room.
    fn limit_live_output(&self, finished: u64) {
        let Some((tasks, bytes)) = self.shared.output_budget.too_large(finished) else {
            return;
        };
        tracing::warn!(
            tasks = tasks.len(),
            bytes,
            "output of live tasks exceeds --max-output; their oldest output is dropped"
        );
        for id in tasks {
            if let Some(handle) = self.shared.registry.get(&id) {
                handle.limit_output(bytes);
            }
        }
    }

    /// The oldest tasks of a class, and as many more as may be skipped.
    async fn oldest(
        &self,
        class: FinishedClass,
        most: usize,
    ) -> Result<Vec<Candidate>, JournalError> {
        let limit = most + self.remover.skipped();
        let journal = self.journal();
        journal.oldest_finished(class, Revision(0), limit).await
    }

    async fn prune_events(&self) -> Result<Progress, JournalError> {
        let journal = self.journal();
        let first_kept = (journal.head().0 + 1).saturating_sub(self.limits.events.max(1));
        for _ in 0..EVENT_BATCHES {
            if !journal.prune_events(Revision(first_kept)).await? {
                return Ok(Progress::Done);
            }
        }
        Ok(Progress::MoreToDo)
    }

    fn journal(&self) -> &Journal {
        &self.shared.parts.journal
    }
}
