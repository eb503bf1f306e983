//! Who may do what, and when.
//!
//! ```text
//!  service ──> Supervisor ──> registry of live tasks
//!                                │ one inbox each
//!                                v
//!                              actor ── lifecycle::step(task, input) ──> effects
//!                                │ record                                │ signal, kill, sweep
//!                                v                                       v
//!                             journal                                  process
//! ```
//!
//! Each live task has one owner, its actor; everybody else sends it messages. What a task does next
//! is decided by a pure function (`lifecycle`); the actor carries the decision out, first on disk
//! and then in the world. A finished task has no actor: it is in the journal.

mod actor;
mod admission;
mod case;
mod ending;
mod leftovers;
mod lifecycle;
mod numbers;
mod observe;
mod orders;
mod queue;
mod recording;
mod recovery;
mod registry;
mod requests;
mod resume;
mod retention;
mod spawn;
mod waiting;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use tokio::sync::watch;

pub use admission::{QueueState, Refused};
pub use ending::Stopped;
pub use lifecycle::DetachRequest;
pub use queue::{QueueChange, QueueError};
pub use recovery::Recovered;
pub use registry::{AttachedClient, Handle};
pub use requests::{CancelOutcome, Cancelled, DetachOutcome, Detached};
pub use spawn::{SpawnError, Spawned};

use crate::{
    config::Limits,
    journal::{Journal, JournalError},
    process::{
        containment::ChosenContainment, launch::BaseEnv, shim::ShimPool, task_file::TaskDir,
        tree::sweep::Sweeper,
    },
    task::{Actor, Filter, StopCause, StopMode, Task, TaskId},
};
use queue::QueueChanges;
use registry::Registry;
use spawn::Requests;

/// What the supervisor works with.
#[derive(Debug)]
pub struct Parts {
    /// The truth.
    pub journal: Journal,
    /// The shims, those that wait included.
    pub shims: ShimPool,
    /// The rung in use.
    pub containment: ChosenContainment,
    /// What every task's environment begins with.
    pub base_env: BaseEnv,
    /// Where task files are.
    pub task_dir: TaskDir,
    /// Where tasks start that were given no directory.
    pub working_directory: PathBuf,
    /// How many tasks may be live at once.
    pub limits: Limits,
}

/// The owner of all tasks; cheap to clone.
#[derive(Debug, Clone)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

/// What the actors share.
#[derive(Debug)]
struct Shared {
    parts: Parts,
    registry: Registry,
    requests: Requests,
    queue_changes: QueueChanges,
    /// True once no new task is let in.
    closed: AtomicBool,
    /// Who looks for processes that no shim watches.
    sweeper: Sweeper,
    /// How many actors there are.
    present: watch::Sender<usize>,
    /// True once calls are let in, and so somebody can come to hold a task.
    serving: watch::Sender<bool>,
    /// True once the server is going down: actors leave their tasks to the next one.
    leaving: watch::Sender<bool>,
}

/// How a task is to be stopped.
#[derive(Debug, Clone)]
pub struct CancelRequest {
    /// What asks.
    pub cause: StopCause,
    /// How; `None`: as the task's own policy says.
    pub mode: Option<CancelMode>,
    /// Who asks.
    pub actor: Actor,
    /// Why.
    pub reason: Option<String>,
    /// Whether its children are to be stopped before it.
    pub cascade: Cascade,
}

/// A way to stop that a caller chose, where it differs from the task's own policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelMode {
    /// Ask, with these parts of the policy replaced.
    Graceful {
        /// How long the tree may take.
        grace: Option<Duration>,
        /// What it is asked with.
        signal: Option<crate::task::Signal>,
    },
    /// Kill.
    Force,
}

/// Whether a cancel reaches the tasks that a task has spawned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cascade {
    /// Yes, before it reports its own end.
    Children,
    /// No.
    Alone,
}

/// An actor's presence: counted until it is dropped.
#[derive(Debug)]
struct Presence(Arc<Shared>);

impl Presence {
    fn of(shared: &Arc<Shared>) -> Self {
        shared.present.send_modify(|present| *present += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.0.present.send_modify(|present| *present -= 1);
    }
}

impl Supervisor {
    /// One with no tasks yet: [`Supervisor::recover`] takes back those of an earlier server.
    pub fn new(parts: Parts) -> Self {
        let shared = Shared {
            registry: Registry::new(parts.limits.clone()),
            requests: Requests::default(),
            queue_changes: QueueChanges::default(),
            closed: AtomicBool::new(false),
            sweeper: Sweeper::default(),
            present: watch::Sender::new(0),
            serving: watch::Sender::new(false),
            leaving: watch::Sender::new(false),
            parts,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// What it works with.
    pub fn parts(&self) -> &Parts {
        &self.shared.parts
    }

    /// A live task.
    pub fn live(&self, id: &TaskId) -> Option<Handle> {
        self.shared.registry.get(id)
    }

    /// How many tasks are live, those that wait for their turn not counted.
    pub fn running_count(&self) -> usize {
        self.shared.registry.running()
    }

    /// The live tasks that match, newest first.
    pub fn live_matching(&self, filter: &Filter) -> Vec<Handle> {
        self.shared.registry.matching(filter)
    }

    /// Asks a task to stop. The intent is durable when this returns; `None` if there is no such task.
    pub async fn cancel(
        &self,
        id: &TaskId,
        request: CancelRequest,
    ) -> Result<Option<Cancelled>, JournalError> {
        if let Some(handle) = self.live(id)
            && let Some(cancelled) = handle.cancel(request).await
        {
            return cancelled.map(Some);
        }
        // Not live, or over before it heard.
        match self.parts().journal.task(id).await? {
            // Its actor has left, for the server is going down.
            Some(task) if task.is_live() => Err(JournalError::Closed),
            task => Ok(task.map(|task| Cancelled {
                task,
                outcome: CancelOutcome::AlreadyFinished,
            })),
        }
    }

    /// Turns a task into a background one. That is durable when this returns; `None` if there is no such
    /// task.
    pub async fn detach(
        &self,
        id: &TaskId,
        request: DetachRequest,
    ) -> Result<Option<Detached>, JournalError> {
        if let Some(handle) = self.live(id)
            && let Some(detached) = handle.detach(request).await
        {
            return detached.map(Some);
        }
        match self.parts().journal.task(id).await? {
            // Its actor has left, for the server is going down.
            Some(task) if task.is_live() => Err(JournalError::Closed),
            task => Ok(task.map(|task| Detached {
                task,
                outcome: DetachOutcome::AlreadyFinished,
            })),
        }
    }

    /// Lets go of every task, and lets them run: the next server takes them back. Returns when the
    /// last actor is gone.
    pub async fn leave(&self) {
        self.close();
        self.shared.leaving.send_replace(true);
        self.shared.parts.shims.dismiss();
        let mut present = self.shared.present.subscribe();
        // The sender is ours, so there is always an answer.
        let _ = present.wait_for(|present| *present == 0).await;
        leftovers::remove_idle_cgroups(&self.shared);
    }
}

impl CancelRequest {
    /// How this task is to be stopped, its own policy considered.
    fn mode_for(&self, task: &Task) -> StopMode {
        let mut policy = task.spec.stop_policy;
        match self.mode {
            Some(CancelMode::Force) => return StopMode::Force,
            Some(CancelMode::Graceful { grace, signal }) => {
                policy.grace = grace.unwrap_or(policy.grace);
                policy.signal = signal.unwrap_or(policy.signal);
            }
            None => {}
        }
        StopMode::Graceful(policy)
    }
}
