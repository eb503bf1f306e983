//! Forgetting: what a caller has asked to be forgotten, and what the past has too much of.
//!
//! The keeper removes finished tasks beyond the limits, those first that were the first to end; a
//! task whose end nobody has seen goes only when there is no other. It drops old events, too. It works
//! in small steps with pauses between them, since deleting many files at once makes every later
//! creation slow; and it rests while there is nothing to do.
//!
//! The record goes before the file: a crash in between leaves a file without a task, never a task
//! without its output.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{sync::watch, task::spawn_blocking};

use super::{Presence, Shared, Supervisor};
use crate::{
    config::Retention,
    crash,
    journal::{Candidate, FinishedTotals, Journal, JournalError},
    process::task_file::TaskDir,
    task::{Revision, TaskId, Timestamp},
};

/// Between two steps while there is more to do.
const PAUSE: Duration = Duration::from_millis(100);
/// How long events gather before they are looked at: a busy server is looked at once in this time.
const GATHER: Duration = Duration::from_secs(1);
/// How long to wait when the disk refuses.
const RETRY: Duration = Duration::from_secs(5);
/// Tasks of one step: few, unless a great many are waiting. At most a thousand a second, which is more
/// than can be started.
const FEWEST: u64 = 10;
const MOST: u64 = 100;
/// The part of the excess that one step takes, where that is between the two.
const PART: u64 = 100;
/// How often one step drops events, some hundreds each time.
const DROPS: usize = 4;
/// The age of tasks is looked at this often at least.
const AGE_CHECK: Duration = Duration::from_secs(60);

/// What one step has left to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Left {
    More,
    Nothing,
}

/// Who keeps the past within its limits.
#[derive(Debug)]
struct Keeper {
    shared: Arc<Shared>,
    limits: Retention,
    /// Finished tasks whose record is damaged: they cannot be told as removed, and are passed over.
    unreadable: HashSet<TaskId>,
    _presence: Presence,
}

impl Supervisor {
    /// Forgets finished tasks, then deletes their output. In a future of its own: a caller that
    /// leaves meanwhile leaves no file behind.
    pub async fn forget(&self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        let shared = Arc::clone(&self.shared);
        let forgotten = tokio::spawn(async move { forget(&shared, ids).await });
        forgotten.await.unwrap_or(Err(JournalError::Closed))
    }

    /// Keeps the past within these limits until the server leaves.
    pub fn keep_within(&self, limits: Retention) {
        let keeper = Keeper {
            _presence: Presence::of(&self.shared),
            shared: Arc::clone(&self.shared),
            limits,
            unreadable: HashSet::new(),
        };
        tokio::spawn(keeper.run());
    }
}

async fn forget(shared: &Shared, ids: Vec<TaskId>) -> Result<(), JournalError> {
    let key = shared.parts.journal.id_key();
    let seqs = ids.iter().map(|id| key.seq(id)).collect();
    let _removal = shared.tails.begin_removal(seqs);
    crash::point("remove.before-journal");
    shared.parts.journal.remove(ids.clone()).await?;
    crash::point("remove.forgotten");
    let task_dir = shared.parts.task_dir.clone();
    // It has no way to fail but by a panic, and the records are gone in any case.
    let _ = spawn_blocking(move || delete(&task_dir, &ids)).await;
    Ok(())
}

fn complain(error: &(dyn std::error::Error + 'static)) {
    tracing::warn!(error, "retention pass failed; will retry");
}

fn delete(task_dir: &TaskDir, ids: &[TaskId]) {
    for id in ids {
        crash::point("remove.before-file");
        // The record is gone; a file that stays is only space, and said to be there.
        if let Err(error) = task_dir.remove(id) {
            tracing::warn!(task = %id, %error, "its output could not be deleted");
        }
    }
}

impl Keeper {
    /// A step is never cut short: what was forgotten is deleted, too.
    async fn run(mut self) {
        let mut leaving = self.shared.leaving.subscribe();
        let mut head = self.journal().watch();
        let mut counted = false;
        loop {
            head.mark_unchanged();
            let done = match counted {
                true => self.step().await,
                false => self.journal().count_finished().await.map(|()| Left::More),
            };
            counted |= done.is_ok();
            tokio::select! {
                biased;
                _ = leaving.wait_for(|leaving| *leaving) => break,
                () = self.pause(done, &mut head) => {}
            }
        }
        if let Err(error) = self.journal().write_delivered().await {
            tracing::warn!(%error, "could not persist delivery marks");
        }
    }

    async fn pause(&self, done: Result<Left, JournalError>, head: &mut watch::Receiver<Revision>) {
        match done {
            Ok(Left::More) => tokio::time::sleep(PAUSE).await,
            Ok(Left::Nothing) => {
                self.rest(head).await;
                tokio::time::sleep(GATHER).await;
            }
            Err(error) => {
                complain(&error);
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Until something happens that may have to do with the limits.
    async fn rest(&self, head: &mut watch::Receiver<Revision>) {
        let grown_old = async {
            match self.limits.age {
                Some(age) => tokio::time::sleep(age.min(AGE_CHECK)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            // The sender is the journal's, and we have the journal.
            _ = head.changed() => {}
            () = self.journal().delivered_noted() => {}
            () = grown_old => {}
        }
    }

    async fn step(&mut self) -> Result<Left, JournalError> {
        self.journal().write_delivered().await?;
        let tasks = self.shed_tasks().await?;
        let events = self.shed_events().await?;
        Ok(match (tasks, events) {
            (Left::Nothing, Left::Nothing) => Left::Nothing,
            (Left::More, _) | (_, Left::More) => Left::More,
        })
    }

    async fn shed_tasks(&mut self) -> Result<Left, JournalError> {
        let held = self.journal().finished_totals();
        let excess = Excess::of(held, &self.limits);
        if excess.is_none() && self.limits.age.is_none() {
            return Ok(Left::Nothing);
        }
        let most = (excess.tasks / PART).clamp(FEWEST, MOST) as usize;
        let asked = most + self.unreadable.len();
        let mut found = self.journal().oldest_delivered(asked).await?;
        self.drop_unreadable(&mut found);
        let mut going = excess.choose(&found, self.limits.age, most);
        if going.is_empty() && !excess.is_none() {
            found = self.journal().oldest_finished(asked).await?;
            self.drop_unreadable(&mut found);
            going = excess.choose(&found, None, most);
        }
        let left = match going.len() < most {
            true => Left::Nothing,
            false => Left::More,
        };
        self.remove(going).await?;
        Ok(left)
    }

    fn drop_unreadable(&self, found: &mut Vec<Candidate>) {
        found.retain(|candidate| !self.unreadable.contains(&candidate.id));
    }

    async fn remove(&mut self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        if ids.is_empty() {
            return Ok(());
        }
        match forget(&self.shared, ids.clone()).await {
            Err(JournalError::NotFound { .. } | JournalError::Damaged { .. }) => {
                self.remove_each(ids).await
            }
            forgotten => forgotten,
        }
    }

    /// One that somebody else has forgotten meanwhile is gone as well; one that cannot be read stays.
    async fn remove_each(&mut self, ids: Vec<TaskId>) -> Result<(), JournalError> {
        for id in ids {
            match forget(&self.shared, vec![id.clone()]).await {
                Ok(()) | Err(JournalError::NotFound { .. }) => {}
                Err(error @ JournalError::Damaged { .. }) => {
                    tracing::error!(task = %id, %error, "it is kept, for it cannot be read");
                    self.unreadable.insert(id);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn shed_events(&self) -> Result<Left, JournalError> {
        let journal = self.journal();
        let first_kept = (journal.head().0 + 1).saturating_sub(self.limits.events.max(1));
        for _ in 0..DROPS {
            if !journal.prune_events(Revision(first_kept)).await? {
                return Ok(Left::Nothing);
            }
        }
        Ok(Left::More)
    }

    fn journal(&self) -> &Journal {
        &self.shared.parts.journal
    }
}

/// How much there is beyond the limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Excess {
    tasks: u64,
    output_bytes: u64,
}

impl Excess {
    fn of(held: FinishedTotals, limits: &Retention) -> Self {
        Self {
            tasks: held.tasks.saturating_sub(limits.finished),
            output_bytes: held.output_bytes.saturating_sub(limits.output_bytes),
        }
    }

    fn is_none(self) -> bool {
        self.tasks == 0 && self.output_bytes == 0
    }

    /// Which of these, the oldest first, have to go: until what is left is within the limits, and
    /// none is older than it may be.
    fn choose(mut self, found: &[Candidate], age: Option<Duration>, most: usize) -> Vec<TaskId> {
        let now = Timestamp::now();
        let too_old =
            |candidate: &Candidate| age.is_some_and(|age| now.since(candidate.ended) > age);
        let mut going = Vec::new();
        for candidate in found.iter().take(most) {
            if self.is_none() && !too_old(candidate) {
                break;
            }
            self.tasks = self.tasks.saturating_sub(1);
            self.output_bytes = self.output_bytes.saturating_sub(candidate.output_bytes);
            going.push(candidate.id.clone());
        }
        going
    }
}
