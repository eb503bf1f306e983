//! The supervisor: decides what happens to tasks, and when.
//!
//! ```text
//!  service ──> Supervisor ──> registry of live tasks
//!                                │ one inbox each
//!                                v
//!                           task actor ── lifecycle::step(task, input) ──> effects
//!                                │ record                                    │ signal, kill, sweep
//!                                v                                           v
//!                             journal                                      process
//! ```
//!
//! Each live task has one owner, its actor; every other part sends it messages. A pure function
//! (`lifecycle`) decides the next step of a task. The actor carries it out: first in the journal,
//! then in the operating system. A finished task has no actor; it is in the journal only.
//!
//! | module | owns |
//! | --- | --- |
//! | `calls` | the calls of the service, each up to a message to an actor |
//! | `callers` | the task that a caller is inside of, and its rights |
//! | `admission` | keys, queues and limits: pure |
//! | `registry` | the live tasks and their handles, the sessions and their owners |
//! | `task_actor` | one live task |
//! | `lifecycle` | the state machine of a task: pure |
//! | `looks` | readiness and ports of a task, looked at from outside |
//! | `output` | reading and searching output |
//! | `server` | start-up, shutdown, retention, leftovers |

mod admission;
mod callers;
mod calls;
mod lifecycle;
mod looks;
mod output;
mod registry;
mod server;
mod task_actor;

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::watch;

pub(crate) use admission::{QueueState, Refused};
pub(crate) use calls::{
    input::{ClosedBy, InputEnd, InputError, InputHold, InputWrite, LONGEST_WRITER},
    observe::Observed,
    queues::{QueueChange, QueueError},
    requests::{
        CancelMode, CancelOutcome, CancelRequest, Cancelled, Cascade, DetachOutcome, Detached,
        UpdateOutcome, Updated,
    },
    screen::Screen,
    spawn::{Notice, Requester, SpawnError},
    work::{Listens, Presence, Sign, TakeOver, WorkError, WorkerSession},
};
pub(crate) use lifecycle::{DetachRequest, PatternChange};
pub(crate) use looks::probe::HostNotAllowed;
pub(crate) use output::{
    Boundary, Excerpt, ExcerptKind, Extent, HeadAndTail, LINE_BYTES, Limits as PieceLimits,
    OutputStart, Part, Piece, Read, Search, SearchKey, SearchThreads, TAIL_BYTES,
};
pub(crate) use registry::{
    handle::{AttachedClient, Handle, Standing},
    owners::{OwnError, SessionOwner},
};
pub(crate) use server::{recovery::Recovered, shutdown::Stopped};

/// Types and rules of the process layer that the supervisor's own interface uses.
pub(crate) use crate::process::{
    launch::RESERVED_PREFIX,
    signal_name, signal_number,
    tree::{Process, Tree, caller::Caller, owner::PinnedProcess, ports::ListeningPort},
};

use crate::{
    config::{AllowedHosts, Limits},
    journal::Journal,
    process::{
        containment::ChosenContainment, launch::BaseEnv, shim::ShimPool, task_file::TaskDir,
        tree::sweep::Sweeper,
    },
    task::{Filter, TaskId},
};
use calls::{queues::QueueChanges, spawn::Requests};
use looks::probe::Probes;
use output::excerpts::ExcerptCache;
use registry::{Registry, owners::OwnedSessions};
use server::{MemoryRoom, OutputBudget, haste::Haste, meters::Meters};

/// Everything that the supervisor works with.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) journal: Journal,
    pub(crate) shims: ShimPool,
    pub(crate) containment: ChosenContainment,
    /// The variables that every task's environment starts from.
    pub(crate) base_env: BaseEnv,
    pub(crate) task_dir: TaskDir,
    /// The directory of tasks whose request names none.
    pub(crate) working_directory: PathBuf,
    pub(crate) limits: Limits,
    /// The most output on disk, of all tasks together, in bytes.
    pub(crate) max_output: u64,
    pub(crate) probe_hosts: AllowedHosts,
}

/// The owner of all tasks; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
}

/// State that the supervisor and all actors share.
#[derive(Debug)]
struct Shared {
    parts: Parts,
    registry: Registry,
    requests: Requests,
    queue_changes: QueueChanges,
    owned_sessions: OwnedSessions,
    excerpts: ExcerptCache,
    memory_room: MemoryRoom,
    output_budget: OutputBudget,
    probes: Probes,
    /// True once no new task is accepted.
    closed: AtomicBool,
    /// Finds processes that no shim watches.
    sweeper: Sweeper,
    search_threads: SearchThreads,
    haste: Haste,
    meters: Meters,
    /// The number of actors and other jobs that shutdown waits for.
    jobs: watch::Sender<usize>,
    /// True once clients can attach.
    accepts_clients: watch::Sender<bool>,
    /// True once the server shuts down: actors leave their tasks to the next server.
    shutting_down: watch::Sender<bool>,
}

/// Counts one job of the supervisor until it is dropped. Shutdown waits for the last one.
#[derive(Debug)]
struct JobGuard(Arc<Shared>);

impl JobGuard {
    fn new(shared: &Arc<Shared>) -> Self {
        shared.jobs.send_modify(|jobs| *jobs += 1);
        Self(Arc::clone(shared))
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.0.jobs.send_modify(|jobs| *jobs -= 1);
    }
}

impl Shared {
    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    fn is_shutting_down(&self) -> bool {
        *self.shutting_down.borrow()
    }

    async fn shutdown_begun(&self) {
        wait_until_true(&self.shutting_down).await;
    }

    async fn clients_accepted(&self) {
        wait_until_true(&self.accepts_clients).await;
    }
}

async fn wait_until_true(flag: &watch::Sender<bool>) {
    // The caller has the sender, so the channel cannot close.
    let _ = flag.subscribe().wait_for(|flag| *flag).await;
}

impl Supervisor {
    /// A supervisor without tasks. [`Supervisor::recover`] takes over those of an earlier server.
    pub(crate) fn new(parts: Parts, sweeper: Sweeper, search_threads: SearchThreads) -> Self {
        let shared = Shared {
            registry: Registry::new(parts.limits.clone()),
            requests: Requests::default(),
            queue_changes: QueueChanges::default(),
            owned_sessions: OwnedSessions::default(),
            excerpts: ExcerptCache::new(),
            memory_room: MemoryRoom::default(),
            output_budget: OutputBudget::new(parts.max_output),
            probes: Probes::default(),
            closed: AtomicBool::new(false),
            sweeper,
            search_threads,
            haste: Haste::default(),
            meters: Meters::new(),
            jobs: watch::Sender::new(0),
            accepts_clients: watch::Sender::new(false),
            shutting_down: watch::Sender::new(false),
            parts,
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// The live task of this id.
    pub(crate) fn live(&self, id: &TaskId) -> Option<Handle> {
        self.shared.registry.get(id)
    }

    /// The number of live tasks, queued ones not counted.
    pub(crate) fn running_count(&self) -> usize {
        self.shared.registry.running()
    }

    /// The live tasks that match, newest first.
    pub(crate) fn live_matching(&self, filter: &Filter) -> Vec<Handle> {
        self.shared.registry.matching(filter)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.shared.parts.limits
    }

    pub(crate) fn containment(&self) -> &ChosenContainment {
        &self.shared.parts.containment
    }

    /// Starts shims ahead of the tasks that will need them.
    pub(crate) fn stock_up_shims(&self) {
        self.shared.parts.shims.stock_up();
    }

    fn journal(&self) -> &Journal {
        &self.shared.parts.journal
    }
}
