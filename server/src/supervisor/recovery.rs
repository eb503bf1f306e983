//! Taking back the tasks of a server that is gone.
//!
//! Every live task in the journal gets an actor again, and every actor finds out by itself which case
//! it is in and acts, as it would after any broken link: see `case` for the cases and `resume` for
//! what is done about each. One that waits for its turn goes on waiting: the lines are as they were, since
//! each task says what it wants, and its number where it stands. What no task accounts for is dealt with
//! afterwards: see `leftovers`.

use std::{sync::Arc, time::Duration};

use tokio::sync::mpsc;

use super::{Supervisor, actor::TaskActor, waiting::is_told_to_begin};
use crate::{crash, journal::JournalError};

/// How long nothing may come of taking tasks back before the rest is waited for no more: what cannot
/// be recorded on a full disk would keep everybody from making space on it.
const NO_PROGRESS: Duration = Duration::from_secs(3);

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// How many tasks were live when the earlier server went.
    pub tasks: usize,
    /// How many of them still are, or may be.
    pub live: usize,
}

impl Supervisor {
    /// Takes every task back. Each is known to be live or over when this returns, but for those of
    /// which that cannot be recorded now: they are as they were last known, and their actors go on
    /// trying.
    pub async fn recover(&self) -> Result<Recovered, JournalError> {
        crash::point("recovery.begun");
        self.pass_over_taken_numbers().await;
        let tasks = self.parts().journal.live().await?;
        let count = tasks.len();
        // All are known before the first acts: a stop may reach from one to another.
        let readmit = |task| {
            let task = self.as_begun(task);
            let ends = self.shared.registry.readmit(&task);
            self.actor(Arc::unwrap_or_clone(task), ends)
        };
        let actors: Vec<TaskActor> = tasks.into_iter().map(readmit).collect();
        for (name, settings) in self.parts().journal.queues().await? {
            self.shared.registry.configure(&name, settings);
        }
        self.shared.registry.settle();
        let (arrived, mut arrivals) = mpsc::channel(count.max(1));
        for actor in actors {
            tokio::spawn(resume(actor, arrived.clone()));
        }
        drop(arrived);
        let mut over = 0;
        let mut missing = count;
        while let Ok(Some(is_live)) = tokio::time::timeout(NO_PROGRESS, arrivals.recv()).await {
            over += usize::from(!is_live);
            missing -= 1;
            crash::point("recovery.one-taken-back");
        }
        if missing > 0 {
            tracing::warn!(tasks = missing, "serving before these are taken back");
        }
        self.shared.serving.send_replace(true);
        self.clear_leftovers();
        crash::point("recovery.done");
        Ok(Recovered {
            tasks: count,
            live: count - over,
        })
    }
}

/// Takes one task back, says whether it is live, and goes on with it.
async fn resume(actor: TaskActor, arrived: mpsc::Sender<bool>) {
    let actor = actor.take_back().await;
    // Nobody waits for a late one.
    let _ = arrived.send(actor.life.task.is_live()).await;
    drop(arrived);
    actor.run().await;
}

impl TaskActor {
    async fn take_back(mut self) -> Self {
        if self.life.task.is_waiting() {
            // Whom it is to replace may not have been asked to stop.
            self.clear_way();
        } else {
            self.unlaunched = is_told_to_begin(&self.life.task);
            self.shim_gone().await;
        }
        if self.life.awaits_children() {
            self.stop_children();
        }
        self
    }
}
