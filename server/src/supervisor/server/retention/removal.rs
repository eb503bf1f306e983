//! The removal of finished tasks.
//!
//! The record is deleted before the file: a crash between the two leaves a file without a task, never
//! a task without its output.

use std::{collections::HashSet, sync::Arc};

use tokio::task::spawn_blocking;

use crate::{
    crash,
    journal::{Candidate, JournalError},
    process::task_file::TaskDir,
    supervisor::Shared,
    task::TaskId,
};

/// Removes finished tasks, then deletes their output.
pub(super) async fn remove(shared: &Shared, ids: Vec<TaskId>) -> Result<(), JournalError> {
    let key = shared.parts.journal.id_key();
    let seqs = ids.iter().map(|id| key.seq(id)).collect();
    let _removal = shared.excerpts.begin_removal(seqs);
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

/// Removes tasks that a pruner has chosen.
#[derive(Debug)]
pub(super) struct Remover {
    shared: Arc<Shared>,
    /// Finished tasks with a damaged record: they cannot be removed, and are skipped.
    damaged: HashSet<TaskId>,
}

impl Remover {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            damaged: HashSet::new(),
        }
    }

    /// The number of tasks that are skipped.
    pub(super) fn skipped(&self) -> usize {
        self.damaged.len()
    }

    /// Drops the tasks that cannot be removed.
    pub(super) fn removable(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.retain(|candidate| !self.damaged.contains(&candidate.id));
        candidates
    }

    pub(super) async fn remove(&mut self, ids: Vec<TaskId>) -> Result<(), JournalError> {
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
}
