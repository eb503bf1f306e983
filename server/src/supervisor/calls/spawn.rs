//! Spawn: every check that can refuse a request comes first; then the task is admitted and recorded;
//! then its actor starts the shim.
//!
//! ```text
//!  request ──> request_id known? ──yes──> the first answer again
//!                 │ no
//!                 v
//!             checks ──> admission ──> actor: record, launch ──> reply when the leader runs
//!                            │ ENSURE
//!                            └──> an equal task holds the key: that task, once its Spawn is answered
//! ```

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use tokio::{
    sync::{OwnedMutexGuard, oneshot},
    task::spawn_blocking,
};

use crate::supervisor::{
    Handle, HostNotAllowed, Supervisor,
    admission::Refused,
    looks::probe,
    registry::Admitted,
    registry::handle::ActorChannels,
    task_actor::{NewTask, TaskActor},
};
use crate::{
    crash,
    journal::{JournalError, PriorRequest, WorkRecord},
    process::{
        error_text,
        launch::{self, Executable, Unusable},
    },
    task::{
        Authority, CallSpan, Command, Event, Kind, OrphanPolicy, Outcome, SpanContext,
        SpawnFailure, SpawnRequest, Spec, State, Task, TaskId, TaskSpan, Timestamp, ampersand,
    },
};

/// The label that names the span above a task's, for clients that send no header.
const TRACE_LABEL: &str = "traceparent";

/// The party that asks for a task.
#[derive(Debug, Clone)]
pub(crate) struct Requester {
    pub(crate) authority: Authority,
    /// The span of its call, if the server exports traces.
    pub(crate) span: Option<CallSpan>,
}

/// The reason why a task was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("the parent task {0} is not running")]
    ParentNotLive(TaskId),
    #[error("the task would be nested too deeply: {depth} tasks above it, {max} are possible")]
    TooDeep { depth: usize, max: usize },
    /// A caller inside of a task wants orphans that no task has: they would have the user's rights.
    #[error(
        "spec.orphan_policy cannot be ABANDON for a task that {0} spawns: its orphans would belong to no task"
    )]
    AbandonNotAllowed(TaskId),
    #[error("cannot use the working directory {}: {}", path.display(), error_text(source))]
    WorkingDirectory { path: PathBuf, source: io::Error },
    #[error("cannot run the program: {0}")]
    Program(#[from] Unusable),
    #[error(transparent)]
    HostNotAllowed(#[from] HostNotAllowed),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the request id {request_id:?} belongs to a different request, that of {task_id}")]
    RequestIdReused { request_id: String, task_id: TaskId },
    /// The start failed after the task was recorded.
    #[error("task {task_id} could not be started: {failure}")]
    Failed {
        task_id: TaskId,
        failure: SpawnFailure,
    },
    #[error("cannot record the task")]
    Journal(#[from] JournalError),
    #[error("the server is shutting down")]
    ShuttingDown,
    /// A panic: the task is not recorded.
    #[error("a failure of the server has interrupted the call; try again")]
    Interrupted,
}

impl SpawnError {
    /// The error text of the operating system, for a request that names something unusable.
    pub(crate) fn os_error(&self) -> Option<String> {
        match self {
            Self::WorkingDirectory { source, .. } => Some(error_text(source)),
            Self::Program(unusable) => Some(error_text(&unusable.source)),
            Self::Failed { failure, .. } => Some(failure.message.clone()),
            Self::ParentNotLive(_)
            | Self::TooDeep { .. }
            | Self::AbandonNotAllowed(_)
            | Self::HostNotAllowed(_)
            | Self::Refused(_)
            | Self::RequestIdReused { .. }
            | Self::Journal(_)
            | Self::ShuttingDown
            | Self::Interrupted => None,
        }
    }
}

/// The answer to a Spawn.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) task: Arc<Task>,
    pub(crate) notices: Vec<Notice>,
}

/// A difference between a request and the task that answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The script ended in `&`, which was removed.
    TrailingAmpersand,
    /// The task was there before.
    AlreadyRunning,
}

impl Spawned {
    /// The task that the request started, as it was at this event.
    fn new(event: &Event) -> Self {
        Self {
            task: Arc::clone(&event.task),
            notices: ampersand_notice(&event.task.spec),
        }
    }
}

/// The request ids in progress: one Spawn at a time for each.
#[derive(Debug, Default)]
pub(in crate::supervisor) struct Requests(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Requests {
    async fn lock(&self, request_id: &str) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A lock that only this map has is not in use.
            locks.retain(|_, lock| Arc::strong_count(lock) > 1);
            Arc::clone(locks.entry(request_id.to_owned()).or_default())
        };
        lock.lock_owned().await
    }
}

impl Supervisor {
    /// Starts a task, or finds an equal one. Returns it as it was when its leader ran or, if it may wait,
    /// when it was queued; one that was there before, as it is now. A caller that leaves changes nothing.
    pub(crate) async fn spawn(
        &self,
        request: SpawnRequest,
        requester: Requester,
    ) -> Result<Spawned, SpawnError> {
        let request = Self::nested(&requester.authority, request);
        if let Some(own) = requester.authority.bound()
            && request.spec.orphan_policy == OrphanPolicy::Abandon
        {
            return Err(SpawnError::AbandonNotAllowed(own.clone()));
        }
        let Some(request_id) = request.request_id.clone() else {
            return self.start(request, &requester).await;
        };
        let this = self.clone();
        // Spawned, so that the request id stays locked until the task is recorded.
        let served = tokio::spawn(async move {
            let _one_at_a_time = this.shared.requests.lock(&request_id).await;
            match this.journal().find_request(&request).await? {
                Some(prior) => this.repeat_answer(prior, request).await,
                None => this.start(request, &requester).await,
            }
        });
        served.await.unwrap_or_else(|_| Err(self.interrupted()))
    }

    async fn start(
        &self,
        request: SpawnRequest,
        requester: &Requester,
    ) -> Result<Spawned, SpawnError> {
        let begun = Instant::now();
        self.check_open()?;
        let script = without_ampersand(&request.spec.command).await;
        let (spec, executable) = self.check(&request, script)?;
        loop {
            match self.admit(&spec, requester)? {
                Admitted::New(task, channels) => {
                    let spawned = self.launch(*task, channels, request, executable).await?;
                    self.count_spawn(&spawned.task, begun);
                    return Ok(spawned);
                }
                Admitted::Existing(handle) => {
                    if let Some(spawned) = self.existing(&handle, &spec).await? {
                        return Ok(spawned);
                    }
                }
            }
        }
    }

    /// Counts a start, unless the task had to wait for another one.
    fn count_spawn(&self, task: &Task, begun: Instant) {
        if task.started.is_some() && task.queued.is_none() {
            let spawns = &self.shared.meters.spawns;
            spawns.observe(begun.elapsed().as_secs_f64());
        }
    }

    fn admit(&self, spec: &Spec, requester: &Requester) -> Result<Admitted, SpawnError> {
        self.check_open()?;
        let ancestors = self.ancestors(spec)?;
        let above = requester.span.map(|call| self.span_above(spec, call));
        let journal = self.journal();
        let admitted = self.shared.registry.admit(&requester.authority, || {
            let seq = journal.next_seq();
            let id = journal.id_key().task_id(spec.kind, seq);
            let task = Task::new(seq, id, spec.clone(), Timestamp::now());
            Task {
                ancestors,
                span: above.map(|above| Box::new(TaskSpan::new(task.uid, above))),
                ..task
            }
        });
        Ok(admitted?)
    }

    /// The span above a new task's: the one that its label names, else the call's if its caller named one above
    /// that, else its parent task's, else the call's.
    fn span_above(&self, spec: &Spec, call: CallSpan) -> SpanContext {
        let label = spec.labels.get(TRACE_LABEL);
        let of_label = || label.and_then(|text| text.parse().ok());
        let of_caller = || call.parent.map(|_| call.context);
        let of_parent = || {
            let parent = self.live(spec.parent.as_ref()?)?.task();
            parent.span.as_ref().map(|span| span.context)
        };
        of_label()
            .or_else(of_caller)
            .or_else(of_parent)
            .unwrap_or(call.context)
    }

    /// Answers with a task that was there before, once its own Spawn is answered; `None` if its creation
    /// could not be recorded.
    async fn existing(&self, handle: &Handle, asked: &Spec) -> Result<Option<Spawned>, SpawnError> {
        let Some(task) = handle.answered().await else {
            return match self.shared.is_shutting_down() {
                true => Err(SpawnError::ShuttingDown),
                false => Ok(None),
            };
        };
        check_started(&task)?;
        let mut notices = ampersand_notice(asked);
        notices.push(Notice::AlreadyRunning);
        Ok(Some(Spawned { task, notices }))
    }

    /// Starts the actor of a new task, and waits for its answer.
    async fn launch(
        &self,
        task: Task,
        channels: ActorChannels,
        request: SpawnRequest,
        executable: Option<Executable>,
    ) -> Result<Spawned, SpawnError> {
        // Checked again: from here on a stop of the parent, or of all tasks, finds the new task.
        let checked = self.check_open().and_then(|()| self.check_parent(&request));
        if let Err(refused) = checked {
            self.shared.registry.remove(&task.id);
            return Err(refused);
        }
        let (reply, answer) = oneshot::channel();
        let actor = Box::new(self.actor(task, None, channels));
        let new = NewTask {
            request,
            executable,
            reply,
        };
        tokio::spawn(actor.run_new(Box::new(new)));
        let answer = answer.await;
        crash::point("spawn.started-recorded");
        match answer {
            Ok(event) => started(&*event?),
            Err(_) => Err(self.interrupted()),
        }
    }

    /// The reason why a Spawn got no answer.
    fn interrupted(&self) -> SpawnError {
        match self.shared.is_shutting_down() {
            true => SpawnError::ShuttingDown,
            false => SpawnError::Interrupted,
        }
    }

    pub(in crate::supervisor) fn actor(
        &self,
        task: Task,
        work: Option<WorkRecord>,
        channels: ActorChannels,
    ) -> TaskActor {
        TaskActor::new(Arc::clone(&self.shared), task, work, channels)
    }

    fn check_open(&self) -> Result<(), SpawnError> {
        match self.shared.is_closed() {
            true => Err(SpawnError::ShuttingDown),
            false => Ok(()),
        }
    }

    fn check_parent(&self, request: &SpawnRequest) -> Result<(), SpawnError> {
        let Some(parent) = &request.spec.parent else {
            return Ok(());
        };
        let state = self.live(parent).map(|handle| handle.task().state());
        match state {
            Some(State::Queued | State::Starting | State::Running) => Ok(()),
            Some(State::Stopping | State::Ended(_)) | None => {
                Err(SpawnError::ParentNotLive(parent.clone()))
            }
        }
    }

    /// The ancestors of a task with this specification, as many as are possible.
    fn ancestors(&self, spec: &Spec) -> Result<Vec<TaskId>, SpawnError> {
        let Some(parent) = &spec.parent else {
            return Ok(Vec::new());
        };
        let Some(handle) = self.live(parent) else {
            return Err(SpawnError::ParentNotLive(parent.clone()));
        };
        let mut ancestors = handle.task().ancestors.clone();
        ancestors.push(parent.clone());
        let (depth, max) = (ancestors.len(), self.limits().depth);
        match depth > max {
            true => Err(SpawnError::TooDeep { depth, max }),
            false => Ok(ancestors),
        }
    }

    /// Makes every check that needs no admission. `script` replaces the command of the request. A hosted
    /// task has no executable, and its directory is only data.
    fn check(
        &self,
        request: &SpawnRequest,
        script: Option<Command>,
    ) -> Result<(Spec, Option<Executable>), SpawnError> {
        self.check_parent(request)?;
        let parts = &self.shared.parts;
        if let Some(ready) = &request.spec.ready {
            probe::check_host(&ready.probe, parts.probe_hosts)?;
        }
        let mut spec = request.spec.clone();
        if spec.kind == Kind::Hosted {
            return Ok((spec, None));
        }
        if spec.working_directory.as_os_str().is_empty() {
            spec.working_directory = parts.working_directory.clone();
        }
        if let Some(command) = script {
            spec.command = command;
            spec.foreground = None;
            spec.had_ampersand = true;
        }
        if let Some(exclusive) = &mut spec.exclusive {
            exclusive.variables = self.journal().variable_digests(request);
        }
        let directory = &spec.working_directory;
        launch::check_directory(directory).map_err(|source| SpawnError::WorkingDirectory {
            path: directory.clone(),
            source,
        })?;
        let executable = launch::resolve(&spec.command, directory, parts.base_env.path(request))?;
        Ok((spec, Some(executable)))
    }

    /// Gives the first answer to a repeated request.
    async fn repeat_answer(
        &self,
        prior: PriorRequest,
        request: SpawnRequest,
    ) -> Result<Spawned, SpawnError> {
        if !prior.is_same {
            return Err(SpawnError::RequestIdReused {
                request_id: request.request_id.unwrap_or_default(),
                task_id: prior.task.id.clone(),
            });
        }
        match prior.answer {
            Some(event) => started(&event),
            // The first call was cut short, and the task is still starting.
            None => self.wait_for_answer(&prior.task.id).await,
        }
    }

    async fn wait_for_answer(&self, id: &TaskId) -> Result<Spawned, SpawnError> {
        if let Some(handle) = self.live(id) {
            let answered = handle.answered().await;
            answered.ok_or(SpawnError::ShuttingDown)?;
        }
        match self.journal().first_answer(id).await? {
            Some(event) => started(&event),
            None => Err(SpawnError::ShuttingDown),
        }
    }
}

/// The script without its trailing `&`; `None` if it has none. A script that may have one is parsed
/// on a thread that may block.
async fn without_ampersand(command: &Command) -> Option<Command> {
    let Command::Shell { script, program } = command else {
        return None;
    };
    if !script.contains('&') {
        return None;
    }
    let (script, program) = (script.clone(), program.clone());
    let parsed = spawn_blocking(move || {
        let script = ampersand::trailing(&script, program.as_deref())?;
        Some(Command::Shell { script, program })
    });
    parsed.await.ok().flatten()
}

fn started(event: &Event) -> Result<Spawned, SpawnError> {
    check_started(&event.task)?;
    Ok(Spawned::new(event))
}

/// A failed start is an error; a task that was cancelled before its start is an answer.
fn check_started(task: &Task) -> Result<(), SpawnError> {
    match task.leader_end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::SpawnFailed(failure)) => Err(SpawnError::Failed {
            task_id: task.id.clone(),
            failure: failure.clone(),
        }),
        Some(
            Outcome::Exited(_)
            | Outcome::Signalled { .. }
            | Outcome::Unknown(_)
            | Outcome::Worker(_),
        )
        | None => Ok(()),
    }
}

fn ampersand_notice(spec: &Spec) -> Vec<Notice> {
    let removed = spec.had_ampersand;
    removed
        .then_some(Notice::TrailingAmpersand)
        .into_iter()
        .collect()
}
