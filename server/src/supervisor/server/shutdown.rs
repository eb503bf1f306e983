//! Shutdown: stops every task, or leaves the tasks to the next server.
//!
//! No new task is accepted after [`Supervisor::close`]. A Spawn that passed the check before that is
//! found by `stop_all`: Spawn checks again after the task is in the registry, and `stop_all` reads the
//! registry after the close.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::task::JoinSet;

use super::leftovers;
use crate::{
    supervisor::{CancelRequest, Handle, Supervisor, lifecycle::KILL_DEADLINE},
    task::{Filter, StopMode, Task},
};

/// The numbers of tasks after a stop of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stopped {
    pub(crate) finished: usize,
    /// Tasks that could not be killed.
    pub(crate) live: usize,
}

impl Supervisor {
    /// Accepts no new task from now on. Live tasks are not affected.
    pub(crate) fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
    }

    /// Closes the supervisor and stops every live task. Returns when each is finished, or its kill is
    /// overdue.
    pub(crate) async fn stop_all(&self, request: CancelRequest) -> Stopped {
        self.close();
        let mut stops = JoinSet::new();
        for handle in self.live_matching(&Filter::default()) {
            stops.spawn(stop(handle, request.clone()));
        }
        let mut stopped = Stopped::default();
        while let Some(task) = stops.join_next().await {
            match task {
                Ok(Some(task)) if task.has_stopped() && !task.has_survivors() => {
                    stopped.finished += 1;
                }
                Ok(Some(_)) => stopped.live += 1,
                // The task was never recorded, or another call shuts the server down.
                Ok(None) | Err(_) => {}
            }
        }
        stopped
    }

    /// Leaves every live task to the next server. Returns when the last actor has ended.
    pub(crate) async fn leave_tasks(&self) {
        self.close();
        self.shared.shutting_down.send_replace(true);
        self.shared.parts.shims.dismiss();
        let mut jobs = self.shared.jobs.subscribe();
        // The sender is in `shared`, so the channel cannot close.
        let _ = jobs.wait_for(|jobs| *jobs == 0).await;
        leftovers::remove_unused_cgroups(&self.shared);
        self.shared.parts.task_dir.release_memory_dir();
    }
}

/// Stops a task; returns it when it is finished, its kill is overdue, or its time is up.
async fn stop(handle: Handle, request: CancelRequest) -> Option<Arc<Task>> {
    let grace = match request.mode_for(&handle.task()) {
        StopMode::Graceful(policy) => policy.grace.saturating_add(policy.soft_grace),
        StopMode::Force => Duration::ZERO,
    };
    let within = grace.saturating_add(2 * KILL_DEADLINE);
    let stopped = tokio::time::timeout(within, cancel_and_wait(&handle, request)).await;
    stopped.unwrap_or_else(|_| Some(handle.task()))
}

async fn cancel_and_wait(handle: &Handle, request: CancelRequest) -> Option<Arc<Task>> {
    // Its actor stops it also if that cannot be recorded.
    let _ = handle.cancel(request).await;
    handle.stopped().await.map(|standing| standing.task)
}
