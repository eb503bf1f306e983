//! The start of the leader, at once or after the queue.
//!
//! The request of a queued task is in a file beside the journal, and is read when the task is admitted. So a queued
//! task costs only the memory of its record, and one of an earlier server starts in the same way. The
//! admission is recorded before anything is started: a server that dies between the two leaves an
//! admitted task without a task file, which the next server starts.

use std::{io, path::PathBuf};

use super::{SpawnReply, TaskActor};
use crate::{
    crash,
    journal::JournalError,
    process::{
        error_text,
        launch::{self, EnvBlock, Executable},
        shim::{AfterFailure, Launch, ShimTerminalSize, Stdin},
    },
    supervisor::{callers::token_of, lifecycle::Input},
    task::{Placement, SpawnFailure, SpawnRequest, SpawnStage, Spec, Task, TerminalSize},
};

/// The reason why an admitted task cannot be launched.
#[derive(Debug, thiserror::Error)]
enum CannotLaunch {
    #[error("cannot read the request")]
    Journal(#[from] JournalError),
    #[error("the request is not there any more")]
    NoRequest,
    #[error("{}", error_text(.0))]
    Directory(io::Error),
    #[error(transparent)]
    Program(#[from] launch::Unusable),
}

/// A task that is to begin.
pub(in crate::supervisor) struct NewTask {
    pub(in crate::supervisor) request: SpawnRequest,
    /// None for a hosted task.
    pub(in crate::supervisor) executable: Option<Executable>,
    /// Gets the answer to the Spawn.
    pub(in crate::supervisor) reply: SpawnReply,
}

/// The result of the first steps of a new task.
pub(super) enum Begun {
    Recorded,
    /// The journal has refused the creation: there is no task.
    Refused,
}

/// Everything that a shim needs to start the leader.
pub(super) struct Prepared {
    executable: Executable,
    env: EnvBlock,
    /// The memory file that is reserved for the output.
    memory: Option<PathBuf>,
}

impl Prepared {
    fn new(executable: Executable, env: EnvBlock) -> Self {
        Self {
            executable,
            env,
            memory: None,
        }
    }

    pub(super) fn into_environment(self) -> EnvBlock {
        self.env
    }
}

impl TaskActor {
    /// Records the creation, and launches the leader unless the task is queued.
    pub(super) async fn begin(&mut self, new: NewTask) -> Begun {
        let NewTask {
            request,
            executable,
            reply,
        } = new;
        self.spawn_reply = Some(reply);
        if let Some(executable) = executable.filter(|_| !self.life.task.is_waiting()) {
            let env = self.environment(&request);
            self.prepared = Some(Box::new(Prepared::new(executable, env)));
        }
        crash::point("spawn.before-intent");
        let created = match self.record_created(request).await {
            Ok(created) => created,
            Err(error) => {
                self.shared.registry.remove(&self.life.task.id);
                if let Some(reply) = self.spawn_reply.take() {
                    let _ = reply.send(Err(error));
                }
                return Begun::Refused;
            }
        };
        self.publish(&created);
        self.reply_to_spawn(created);
        crash::point("spawn.intent-recorded");
        self.stop_replaced_tasks();
        match self.life.task.is_waiting() {
            true => {}
            false if self.life.task.is_hosted() => self.start_hosted().await,
            false => self.launch().await,
        }
        Begun::Recorded
    }

    /// Records the admission, then starts the leader.
    pub(super) async fn start_admitted(&mut self) {
        crash::point("queue.before-admitted");
        if let Err(error) = self.apply_or_undo(Input::Admitted).await {
            if !std::mem::replace(&mut self.is_admission_refused, true) {
                let task = &self.life.task.id;
                tracing::error!(%task, %error, "cannot record an admission; will retry");
            }
            return;
        }
        self.is_admission_refused = false;
        // The durable state decides: a task that is being stopped is not started.
        if is_admitted_and_not_started(&self.channels.state.borrow()) {
            crash::point("queue.admitted");
            match self.life.task.is_hosted() {
                true => self.start_hosted().await,
                false => self.launch_queued().await,
            }
        }
    }

    async fn launch_queued(&mut self) {
        match self.prepare_launch().await {
            Ok(prepared) => {
                self.prepared = Some(Box::new(prepared));
                self.launch().await;
            }
            Err(error) => {
                let failure = self.launch_failure(&error);
                self.apply(Input::SpawnFailed(failure)).await;
            }
        }
    }

    /// Launches a task whose shim does not answer, or that an earlier server may have been about to
    /// launch. An earlier server's shim, if it still starts, finds the place of the task file taken, or
    /// takes it first and is found there. One of this server has ended before the place is given up.
    pub(super) async fn launch_once_more(&mut self) {
        if !self.end_late_shim().await {
            return self.shim.set_unreachable();
        }
        self.is_launch_uncertain = false;
        self.shared.parts.shims.drop_stopped();
        if let Err(error) = self.shared.parts.task_dir.remove(&self.life.task.id) {
            return self.retry_later(&error);
        }
        crash::point("queue.launch-once-more");
        match self.prepared {
            Some(_) => self.launch().await,
            None => self.launch_queued().await,
        }
    }

    async fn prepare_launch(&self) -> Result<Prepared, CannotLaunch> {
        let (parts, task) = (&self.shared.parts, &self.life.task);
        let request = parts.journal.waiting_request(task).await?;
        let request = request.ok_or(CannotLaunch::NoRequest)?;
        let directory = &task.spec.working_directory;
        launch::check_directory(directory).map_err(CannotLaunch::Directory)?;
        let path = parts.base_env.path(&request);
        let executable = launch::resolve(&task.spec.command, directory, path)?;
        Ok(Prepared::new(executable, self.environment(&request)))
    }

    fn launch_failure(&self, error: &CannotLaunch) -> SpawnFailure {
        let (stage, path, errno) = match error {
            // Without its request there is nothing to give to a shim.
            CannotLaunch::Journal(_) | CannotLaunch::NoRequest => {
                (SpawnStage::Shim, String::new(), None)
            }
            CannotLaunch::Directory(source) => {
                let directory = self.life.task.spec.working_directory.display();
                let stage = SpawnStage::WorkingDirectory;
                (stage, directory.to_string(), source.raw_os_error())
            }
            CannotLaunch::Program(unusable) => {
                let program = unusable.program.clone();
                (SpawnStage::Exec, program, unusable.source.raw_os_error())
            }
        };
        SpawnFailure {
            stage,
            path,
            message: error.to_string(),
            errno: errno.unwrap_or(0),
        }
    }

    pub(super) fn environment(&self, request: &SpawnRequest) -> EnvBlock {
        let task = &self.life.task;
        let base = &self.shared.parts.base_env;
        let token = || token_of(&self.shared, task);
        base.for_task(request, task, token)
    }

    /// Gives the task to a shim.
    async fn launch(&mut self) {
        let terminal = self.terminal_size();
        let (parts, task) = (&self.shared.parts, &self.life.task);
        let Some(prepared) = &mut self.prepared else {
            return;
        };
        if task.placement() == Placement::Foreground && prepared.memory.is_none() {
            prepared.memory = self.shared.reserve_memory(&task.id).await;
        }
        let (task_file, cgroup) = (
            parts.task_dir.path(&task.id),
            parts.containment.leaf(&task.id),
        );
        let launch = Launch {
            uid: task.uid,
            after_failure: match task.spec.restart {
                Some(_) => AfterFailure::Keep,
                None => AfterFailure::End,
            },
            output: &task.spec.output,
            stdin: stdin(&task.spec, terminal),
            output_budget: self.shared.output_budget.most_of_one_task(),
            task_file: &task_file,
            memory: prepared.memory.as_deref(),
            cgroup: cgroup.as_deref(),
            working_directory: &task.spec.working_directory,
            program: &prepared.executable.program,
            argv: &prepared.executable.argv,
            env: &prepared.env,
        };
        let launched = parts.shims.launch(&launch).await;
        crash::point("spawn.shim-launched");
        match launched {
            Ok(link) => {
                self.set_shim_process(link.process());
                self.cgroup = cgroup;
                self.silence.start_ordered();
                self.use_link(link).await;
            }
            Err(error) => {
                let failure = SpawnFailure {
                    stage: SpawnStage::Shim,
                    path: String::new(),
                    message: error_text(&error),
                    errno: error.raw_os_error().unwrap_or(0),
                };
                self.apply(Input::SpawnFailed(failure)).await;
            }
        }
    }
}

/// The stdin of a task. `terminal`: the size of its terminal, if it has one.
fn stdin(spec: &Spec, terminal: Option<TerminalSize>) -> Stdin {
    match (terminal, &spec.input) {
        (Some(TerminalSize { columns, rows }), _) => {
            Stdin::Terminal(ShimTerminalSize { columns, rows })
        }
        (None, Some(_)) => Stdin::Pipe,
        (None, None) => Stdin::Empty,
    }
}

/// True if the admission is the latest fact of the task.
pub(super) fn is_admitted_and_not_started(task: &Task) -> bool {
    let queued = task.queued.as_ref();
    queued.is_some_and(|queued| queued.admitted.is_some())
        && task.is_live()
        && task.started.is_none()
        && task.stop.is_none()
}
