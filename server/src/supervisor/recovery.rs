//! Taking back the tasks of a server that is gone.
//!
//! Every live task in the journal gets an actor again, and every actor finds out by itself which case
//! it is in and acts, as it would after any broken link: see `case` for the cases and `resume` for
//! what is done about each. One that waits for its turn goes on waiting: the lines are as they were,
//! since each task says what it wants, and its number where it stands. What no task accounts for is dealt with afterwards: see `leftovers`.

use std::sync::Arc;

use super::{Supervisor, actor::TaskActor, waiting::is_told_to_begin};
use crate::{crash, journal::JournalError};

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// How many tasks were live when the earlier server went.
    pub tasks: usize,
    /// How many of them still are.
    pub live: usize,
}

impl Supervisor {
    /// Takes every task back; each is known to be live or over when this returns.
    pub async fn recover(&self) -> Result<Recovered, JournalError> {
        crash::point("recovery.begun");
        self.pass_over_taken_numbers();
        let tasks = self.parts().journal.live().await?;
        let mut found = Recovered {
            tasks: tasks.len(),
            live: 0,
        };
        // All are known before the first acts: a stop may reach from one to another.
        let readmit = |task| {
            let ends = self.shared.registry.readmit(&task);
            self.actor(Arc::unwrap_or_clone(task), ends)
        };
        let actors: Vec<TaskActor> = tasks.into_iter().map(readmit).collect();
        for (name, settings) in self.parts().journal.queues().await? {
            self.shared.registry.configure(&name, settings);
        }
        self.shared.registry.settle();
        let mut arrivals = tokio::task::JoinSet::new();
        for actor in actors {
            arrivals.spawn(actor.take_back());
        }
        while let Some(arrived) = arrivals.join_next().await {
            if let Ok(actor) = arrived {
                found.live += usize::from(actor.life.task.is_live());
                tokio::spawn(actor.run());
                crash::point("recovery.one-taken-back");
            }
        }
        self.clear_leftovers();
        crash::point("recovery.done");
        Ok(found)
    }
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
