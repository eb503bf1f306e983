//! Retention: deletes the tasks that a client removes, and prunes finished tasks and old events beyond
//! the limits.
//!
//! The pruner removes the tasks that ended first; a task whose end was not delivered goes only when
//! there is no other. It works in small steps with pauses, since a bulk deletion of files slows down
//! every later creation, and sleeps while there is nothing to do.
//!
//! The record is deleted before the file: a crash between the two leaves a file without a task, never
//! a task without its output.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{sync::watch, task::spawn_blocking};

use crate::{
    config::Retention,
    crash,
    journal::{Candidate, FinishedTotals, Journal, JournalError},
    process::task_file::TaskDir,
    supervisor::{JobGuard, Shared, Supervisor},
    task::{Revision, TaskId, Timestamp},
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

/// Keeps finished tasks and events within the limits.
#[derive(Debug)]
struct Pruner {
    shared: Arc<Shared>,
    limits: Retention,
    /// Finished tasks with a damaged record: they cannot be removed, and are skipped.
    damaged: HashSet<TaskId>,
    _job: JobGuard,
}

impl Supervisor {
    /// Removes finished tasks, then deletes their output. It runs to its end though the caller leaves.
    pub(crate) async fn remove(&self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let removed = tokio::spawn(async move { remove(&shared, ids).await });
        removed.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Prunes in the background, until the server shuts down.
    pub(crate) fn start_pruning(&self, limits: Retention) {
        let pruner = Pruner {
            _job: JobGuard::new(&self.shared),
            shared: Arc::clone(&self.shared),
            limits,
            damaged: HashSet::new(),
        };
        tokio::spawn(pruner.run());
    }
}

async fn remove(shared: &Shared, ids: Vec<TaskId>) -> Result<(), JournalError> {
    let key = shared.parts.journal.id_key();
    let seqs = ids.iter().map(|id| key.seq(id)).collect();
    let _removal = shared.tails.begin_removal(seqs);
    crash::point("remove.before-journal");
    shared.parts.journal.remove(ids.clone()).await?;
    crash::point("remove.recorded");
    let task_dir = shared.parts.task_dir.clone();
    // It fails only by a panic, and the records are deleted in any case.
    let _ = spawn_blocking(move || delete_files(&task_dir, &ids)).await;
    Ok(())
}

fn delete_files(task_dir: &TaskDir, ids: &[TaskId]) {
    for id in ids {
        crash::point("remove.before-file");
        // A file without a record only takes space, until the next start clears it.
        if let Err(error) = task_dir.remove(id) {
            tracing::warn!(task = %id, %error, "cannot delete the output of a removed task");
        }
    }
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
                self.wait_for_change(head).await;
                tokio::time::sleep(ACCUMULATE).await;
            }
            Err(error) => {
                log_failure(&error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Waits for anything that may put the journal beyond its limits.
    async fn wait_for_change(&self, head: &mut watch::Receiver<Revision>) {
        let aged = async {
            match self.limits.age {
                Some(age) => tokio::time::sleep(age.min(AGE_CHECK)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The journal has the sender, so the channel cannot close.
            _ = head.changed() => {}
            () = self.journal().delivered_noted() => {}
            () = aged => {}
        }
    }

    async fn step(&mut self) -> Result<Progress, JournalError> {
        self.journal().write_delivered().await?;
        let tasks = self.prune_tasks().await?;
        let events = self.prune_events().await?;
        Ok(match (tasks, events) {
            (Progress::Done, Progress::Done) => Progress::Done,
            (Progress::MoreToDo, _) | (_, Progress::MoreToDo) => Progress::MoreToDo,
        })
    }

    async fn prune_tasks(&mut self) -> Result<Progress, JournalError> {
        let excess = Excess::of(self.journal().finished_totals(), &self.limits);
        if excess.is_none() && self.limits.age.is_none() {
            return Ok(Progress::Done);
        }
        let most = (excess.tasks / FRACTION).clamp(FEWEST, MOST) as usize;
        let wanted = most + self.damaged.len();
        let delivered = self.journal().oldest_delivered(wanted).await?;
        let mut chosen = excess.choose(&self.readable(delivered), self.limits.age, most);
        if chosen.is_empty() && !excess.is_none() {
            let finished = self.journal().oldest_finished(wanted).await?;
            chosen = excess.choose(&self.readable(finished), None, most);
        }
        let progress = match chosen.len() < most {
            true => Progress::Done,
            false => Progress::MoreToDo,
        };
        self.remove(chosen).await?;
        Ok(progress)
    }

    fn readable(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.retain(|candidate| !self.damaged.contains(&candidate.id));
        candidates
    }

    async fn remove(&mut self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        match remove(&self.shared, ids.clone()).await {
            Err(JournalError::NotFound { .. } | JournalError::Damaged { .. }) => {
                self.remove_each(ids).await
            }
            removed => removed,
        }
    }

    /// A client may have removed some meanwhile. A task with a damaged record is kept.
    async fn remove_each(&mut self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        for id in ids {
            match remove(&self.shared, vec![id.clone()]).await {
                Ok(()) | Err(JournalError::NotFound { .. }) => {}
                Err(error @ JournalError::Damaged { .. }) => {
                    tracing::error!(task = %id, %error, "cannot prune a damaged task; it is kept");
                    self.damaged.insert(id);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
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

/// Logs an error with its sources.
fn log_failure(error: &(dyn std::error::Error + 'static)) {
    tracing::warn!(error, "retention pass failed; will retry");
}

/// The amount beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Excess {
    tasks: u64,
    output_bytes: u64,
}

impl Excess {
    fn of(finished: FinishedTotals, limits: &Retention) -> Self {
        Self {
            tasks: finished.tasks.saturating_sub(limits.finished),
            output_bytes: finished.output_bytes.saturating_sub(limits.output_bytes),
        }
    }

    fn is_none(self) -> bool {
        self.tasks == 0 && self.output_bytes == 0
    }

    /// Chooses tasks, oldest first, until the rest is within the limits and none is too old.
    fn choose(
        mut self,
        candidates: &[Candidate],
        age: Option<Duration>,
        most: usize,
    ) -> Vec<TaskId> {
        let now = Timestamp::now();
        let too_old =
            |candidate: &Candidate| age.is_some_and(|age| now.since(candidate.ended) > age);
        let mut chosen = Vec::new();
        for candidate in candidates.iter().take(most) {
            if self.is_none() && !too_old(candidate) {
                break;
            }
            self.tasks = self.tasks.saturating_sub(1);
            self.output_bytes = self.output_bytes.saturating_sub(candidate.output_bytes);
            chosen.push(candidate.id.clone());
        }
        chosen
    }
}
