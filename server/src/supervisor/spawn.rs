//! Starting a task: everything that can be refused is refused before anything is made; then the
//! intent is recorded; then the shim is started.

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    sync::{OwnedMutexGuard, oneshot},
    task::spawn_blocking,
};

use super::{Supervisor, actor::TaskActor, admission::Refused, lifecycle::Input, registry::Ends};
use crate::{
    crash,
    journal::JournalError,
    process::{
        error_text,
        launch::{self, EnvBlock, Executable, Unusable},
        shim::Launch,
    },
    task::{
        Command, Event, EventKind, Outcome, Placement, SpawnFailure, SpawnRequest, Spec, State,
        Task, TaskId, Timestamp, ampersand,
    },
};

/// The answer to a Spawn: the task when its leader began to run, or as one that waits for its turn.
#[derive(Debug, Clone)]
pub struct Spawned(pub Arc<Event>);

/// Why a task was not started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The parent cannot have children.
    #[error("the parent task {0} is not running")]
    ParentNotLive(TaskId),
    /// It cannot start where it is to.
    #[error("the working directory {} cannot be used: {}", path.display(), error_text(source))]
    WorkingDirectory {
        /// Where.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// What it is to run cannot be run.
    #[error("the program cannot be run: {0}")]
    Program(#[from] Unusable),
    /// It may not begin, and may not wait.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The request id is taken.
    #[error("the request id {request_id:?} belongs to a different request, that of {task_id}")]
    RequestIdReused {
        /// Which.
        request_id: String,
        /// By whom.
        task_id: TaskId,
    },
    /// The system refused; a task has the details.
    #[error("{task_id} could not be started: {}: {}", failure.operation, failure.message)]
    Failed {
        /// Which.
        task_id: TaskId,
        /// What happened.
        failure: SpawnFailure,
    },
    /// It could not be recorded.
    #[error("the task could not be recorded")]
    Journal(#[from] JournalError),
    /// The server is going down.
    #[error("the server is shutting down")]
    Leaving,
}

/// The request ids that are being served: one at a time each.
#[derive(Debug, Default)]
pub(super) struct Requests(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Requests {
    async fn turn(&self, request_id: &str) -> OwnedMutexGuard<()> {
        let queue = {
            let mut queues = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Those that nobody waits in are only held by this map.
            queues.retain(|_, queue| Arc::strong_count(queue) > 1);
            Arc::clone(queues.entry(request_id.to_owned()).or_default())
        };
        queue.lock_owned().await
    }
}

impl Supervisor {
    /// Starts a task, and answers when its leader runs; one that has to wait for its turn, and replaces
    /// nobody, is answered at once. A caller that goes away changes nothing.
    pub async fn spawn(&self, request: SpawnRequest) -> Result<Spawned, SpawnError> {
        let Some(request_id) = request.request_id.clone() else {
            return self.start(request).await;
        };
        let this = self.clone();
        // In a future of its own, so that the request keeps its turn until it is recorded.
        let served = tokio::spawn(async move {
            let _turn = this.shared.requests.turn(&request_id).await;
            match this.parts().journal.find_request(&request_id).await? {
                Some(prior) => this.replay(prior, request).await,
                None => this.start(request).await,
            }
        });
        served.await.unwrap_or(Err(SpawnError::Leaving))
    }

    async fn start(&self, request: SpawnRequest) -> Result<Spawned, SpawnError> {
        self.check_open()?;
        let script = without_ampersand(&request.command).await;
        let (spec, executable) = self.examine(&request, script)?;
        let journal = &self.parts().journal;
        let (task, ends) = self.shared.registry.admit(|| {
            let seq = journal.next_seq();
            let id = journal.id_key().task_id(spec.kind, seq);
            Task::new(seq, id, spec, Timestamp::now())
        })?;
        // Again, now that a stop of the parent, or of all, would find it.
        let checked = self.check_open().and_then(|()| self.check_parent(&request));
        if let Err(refused) = checked {
            self.shared.registry.remove(&task.id);
            return Err(refused);
        }
        let (reply, answer) = oneshot::channel();
        let mut actor = self.actor(task, ends);
        actor.newborn = Some(reply);
        tokio::spawn(actor.begin(request, executable));
        let answer = answer.await;
        crash::point("spawn.started-recorded");
        match answer {
            Ok(event) => spawned(event?),
            Err(_) => Err(SpawnError::Leaving),
        }
    }

    pub(super) fn actor(&self, task: Task, ends: Ends) -> TaskActor {
        TaskActor::new(Arc::clone(&self.shared), task, ends)
    }

    fn check_parent(&self, request: &SpawnRequest) -> Result<(), SpawnError> {
        let Some(parent) = &request.parent else {
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

    /// Everything that can be wrong before anything is made.
    fn examine(
        &self,
        request: &SpawnRequest,
        script: Option<Command>,
    ) -> Result<(Spec, Executable), SpawnError> {
        self.check_parent(request)?;
        let directory = request
            .working_directory
            .as_ref()
            .unwrap_or(&self.parts().working_directory);
        launch::check_directory(directory).map_err(|source| SpawnError::WorkingDirectory {
            path: directory.clone(),
            source,
        })?;
        let path = self.parts().base_env.path(request);
        let had_ampersand = script.is_some();
        let command = script.unwrap_or_else(|| request.command.clone());
        let executable = launch::resolve(&command, directory, path)?;
        let mut rules = request.rules.clone();
        if had_ampersand {
            rules.foreground = None;
        }
        let spec = Spec {
            kind: request.kind,
            name: request.name.clone(),
            session_id: request.session_id.clone(),
            parent: request.parent.clone(),
            labels: request.labels.clone(),
            command,
            working_directory: directory.clone(),
            env_names: request.env.keys().cloned().collect(),
            timeout: request.timeout,
            stop_policy: request.stop_policy,
            rules,
            had_ampersand,
        };
        Ok((spec, executable))
    }

    /// The first answer again.
    async fn replay(
        &self,
        prior: crate::journal::PriorRequest,
        request: SpawnRequest,
    ) -> Result<Spawned, SpawnError> {
        if prior.request != request {
            return Err(SpawnError::RequestIdReused {
                request_id: request.request_id.unwrap_or_default(),
                task_id: prior.task.id.clone(),
            });
        }
        match prior.answer {
            Some(event) => spawned(event),
            // It is being started still, by a request that was cut short.
            None => self.first_answer(&prior.task.id).await,
        }
    }

    async fn first_answer(&self, id: &TaskId) -> Result<Spawned, SpawnError> {
        if let Some(handle) = self.live(id) {
            handle.started().await.ok_or(SpawnError::Leaving)?;
        }
        match self.parts().journal.first_answer(id).await? {
            Some(event) => spawned(event),
            None => Err(SpawnError::Leaving),
        }
    }
}

impl TaskActor {
    /// Records the intent, starts the shim unless it has to wait, and goes on as the task's owner.
    async fn begin(mut self, request: SpawnRequest, executable: Executable) {
        let env = self.environment(&request);
        crash::point("spawn.before-intent");
        if let Err(error) = self.record(EventKind::Created, Some(request)).await {
            self.shared.registry.remove(&self.life.task.id);
            if let Some(newborn) = self.newborn.take() {
                let _ = newborn.send(Err(error));
            }
            return;
        }
        crash::point("spawn.intent-recorded");
        self.clear_way();
        if !self.life.task.is_waiting() {
            self.launch(&executable, &env).await;
        }
        // It may have long to wait, or to run.
        drop((executable, env));
        self.run().await;
    }

    /// What its leader is to find in its environment.
    pub(super) fn environment(&self, request: &SpawnRequest) -> EnvBlock {
        let task = &self.life.task;
        let base = &self.shared.parts.base_env;
        base.for_task(request, &task.id, task.uid)
    }

    /// Has a shim start it.
    pub(super) async fn launch(&mut self, executable: &Executable, env: &EnvBlock) {
        let parts = &self.shared.parts;
        let task = &self.life.task;
        let (task_file, cgroup) = (
            parts.task_dir.path(&task.id),
            parts.containment.leaf(&task.id),
        );
        let memory = match task.placement() {
            Placement::Foreground => parts.task_dir.reserve_memory(&task.id),
            Placement::Background => None,
        };
        let launch = Launch {
            uid: task.uid,
            task_file: &task_file,
            memory: memory.as_deref(),
            cgroup: cgroup.as_deref(),
            working_directory: &task.spec.working_directory,
            program: &executable.program,
            argv: &executable.argv,
            env,
        };
        let launched = parts.shims.launch(&launch).await;
        crash::point("spawn.shim-launched");
        match launched {
            Ok(link) => self.reached(link),
            Err(error) => self.learn(Input::SpawnFailed(not_launched(&error))).await,
        }
    }
}

/// The script without the `&` that it ends in; `None` if it does not. What might be one is looked at
/// where it may take its time.
async fn without_ampersand(command: &Command) -> Option<Command> {
    let Command::Shell { script, program } = command else {
        return None;
    };
    if !script.contains('&') {
        return None;
    }
    let (script, program) = (script.clone(), program.clone());
    let looked = spawn_blocking(move || {
        let script = ampersand::trailing(&script, program.as_deref())?;
        Some(Command::Shell { script, program })
    });
    looked.await.ok().flatten()
}

fn not_launched(error: &io::Error) -> SpawnFailure {
    SpawnFailure {
        operation: "start its shim".to_owned(),
        message: error_text(error),
        errno: error.raw_os_error().unwrap_or(0),
    }
}

/// A start that the system refused is an error; one that was cancelled is an answer.
fn spawned(event: Arc<Event>) -> Result<Spawned, SpawnError> {
    match event.task.leader_end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::SpawnFailed(failure)) => Err(SpawnError::Failed {
            task_id: event.task.id.clone(),
            failure: failure.clone(),
        }),
        Some(Outcome::Exited(_) | Outcome::Signalled { .. } | Outcome::Unknown(_)) | None => {
            Ok(Spawned(event))
        }
    }
}
