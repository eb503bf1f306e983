//! Stopping everything, before the server goes down.
//!
//! From then on nothing new is let in. A start that was let in before is found here: it looks at the
//! door once more after it has taken its place, and whoever stops all looks for places only after the
//! door is closed.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::task::JoinSet;

use super::{CancelRequest, Handle, Supervisor, actor::KILL_WITHIN, spawn::SpawnError};
use crate::task::{Filter, StopMode, Task};

/// What became of the tasks that were live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stopped {
    /// How many are over.
    pub over: usize,
    /// How many are not: they could not be killed, or their stop could not be recorded.
    pub left: usize,
}

impl Supervisor {
    /// Lets no new task in from now on. Those that are live do not notice.
    pub fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
    }

    /// Refuses once the supervisor is closed.
    pub(super) fn check_open(&self) -> Result<(), SpawnError> {
        match self.shared.closed.load(Ordering::SeqCst) {
            true => Err(SpawnError::Leaving),
            false => Ok(()),
        }
    }

    /// Lets no new task in, stops every live one, and returns when each is over, or known to resist.
    pub async fn stop_all(&self, request: CancelRequest) -> Stopped {
        self.close();
        let mut stops = JoinSet::new();
        for handle in self.live_matching(&Filter::default()) {
            stops.spawn(stop(handle, request.clone()));
        }
        let mut stopped = Stopped::default();
        while let Some(over) = stops.join_next().await {
            match over {
                Ok(Some(task)) if !task.is_live() => stopped.over += 1,
                Ok(Some(_)) => stopped.left += 1,
                // It was never born, or the server goes down by another's order.
                Ok(None) | Err(_) => {}
            }
        }
        stopped
    }
}

/// The task when it is over, resists, or has had its time; `None` if there is none.
async fn stop(handle: Handle, request: CancelRequest) -> Option<Arc<Task>> {
    let grace = match request.mode_for(&handle.task()) {
        StopMode::Graceful(policy) => policy.grace,
        StopMode::Force => Duration::ZERO,
    };
    let within = grace.saturating_add(2 * KILL_WITHIN);
    let stopped = tokio::time::timeout(within, ask_and_wait(&handle, request)).await;
    stopped.unwrap_or_else(|_| Some(handle.task()))
}

async fn ask_and_wait(handle: &Handle, request: CancelRequest) -> Option<Arc<Task>> {
    if let Some(Err(error)) = handle.cancel(request).await {
        tracing::error!(task = %handle.task().id, %error, "cannot be stopped");
        return Some(handle.task());
    }
    handle.stopped().await
}
