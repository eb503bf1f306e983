//! Recovery: takes over the tasks of an earlier server.
//!
//! Every live task in the journal gets an actor, which reconciles the task as after any broken
//! connection: see `case` for the cases and `task_actor::reconcile` for the actions. A queued task goes
//! on waiting; its request and its `seq` give it the same position as before. Leftovers come last.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use crate::{
    crash,
    journal::JournalError,
    supervisor::{Supervisor, task_actor::TaskActor},
    task::{Queued, Task},
};

/// The longest wait for the next task before the server starts to serve without the rest: on a full
/// disk a task may never be recorded, and a client must be able to free space.
const NO_PROGRESS: Duration = Duration::from_secs(3);

/// The result of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The number of tasks that were live when the earlier server ended.
    pub tasks: usize,
    /// The number of them that still are, or may be.
    pub live: usize,
}

impl Supervisor {
    /// Takes over every live task. When this returns, each is known to be live or finished, except
    /// tasks whose end cannot be recorded now: their actors keep trying.
    pub(crate) async fn recover(&self) -> Result<Recovered, JournalError> {
        let begun = Instant::now();
        crash::point("recovery.begun");
        self.skip_lost_task_ids().await;
        let actors = self.readmit_tasks().await?;
        let count = actors.len();
        let (reconciled, results) = mpsc::channel(count.max(1));
        for actor in actors {
            tokio::spawn(Box::new(actor).run_found(reconciled.clone()));
        }
        drop(reconciled);
        let finished = count_finished(count, results).await;
        self.shared.accepts_clients.send_replace(true);
        self.take_over_sessions().await?;
        self.clear_leftovers();
        crash::point("recovery.done");
        let _ = self.shared.meters.recovery.set(begun.elapsed());
        Ok(Recovered {
            tasks: count,
            live: count - finished,
        })
    }

    /// Registers all tasks before the first actor runs: a stop may reach from one to another.
    async fn readmit_tasks(&self) -> Result<Vec<TaskActor>, JournalError> {
        let mut actors = Vec::new();
        let mut work = self.journal().live_work().await?;
        for task in self.journal().live().await? {
            let task = self.with_lost_admission(task);
            let channels = self.shared.registry.readmit(&task);
            let work = work.remove(&task.seq);
            actors.push(self.actor(Arc::unwrap_or_clone(task), work, channels));
        }
        for (name, settings) in self.journal().queues().await? {
            self.shared.registry.configure_queue(&name, settings);
        }
        self.shared.registry.admit_all_possible();
        Ok(actors)
    }

    /// A queued task with a task file was admitted; damage or a power cut has cost the journal that
    /// event.
    fn with_lost_admission(&self, mut task: Arc<Task>) -> Arc<Task> {
        let path = self.shared.parts.task_dir.path(&task.id);
        if task.is_waiting() && path.symlink_metadata().is_ok() {
            tracing::warn!(task = %task.id, "queued task has a task file; taken as admitted");
            let admitted = Some(task.created);
            Arc::make_mut(&mut task).queued = Some(Queued { admitted });
        }
        task
    }
}

/// Waits for all tasks, as long as there is progress, and returns the number of finished ones.
async fn count_finished(tasks: usize, mut results: mpsc::Receiver<bool>) -> usize {
    let (mut finished, mut missing) = (0, tasks);
    while let Ok(Some(is_live)) = tokio::time::timeout(NO_PROGRESS, results.recv()).await {
        finished += usize::from(!is_live);
        missing -= 1;
        crash::point("recovery.one-reconciled");
    }
    if missing > 0 {
        tracing::warn!(tasks = missing, "serving before these tasks are recovered");
    }
    finished
}
