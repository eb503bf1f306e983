//! A task that has to wait for its turn: until it comes, then until its leader is launched.
//!
//! What it is to be started with is in the journal, and is read only when the turn has come: so a task
//! that waits costs no more memory than its record, and one that an earlier server left behind begins
//! in the same way. The turn is recorded before anything is started. A server that dies between the two
//! leaves a task that was told to begin and has no file: the next one starts it, as nobody else will.

use std::{io, sync::Arc};

use super::{
    CancelRequest, Cascade, Handle, Presence, Supervisor,
    actor::{STORAGE_RETRY, TaskActor},
    lifecycle::Input,
};
use crate::{
    crash,
    journal::JournalError,
    process::{
        error_text,
        launch::{self, EnvBlock, Executable},
    },
    task::{Actor, Queued, SpawnFailure, StopCause, Task},
};

/// Why a task whose turn has come cannot be launched.
#[derive(Debug, thiserror::Error)]
enum Unready {
    #[error("what it is to run cannot be read")]
    Journal(#[from] JournalError),
    #[error("what it is to run is no longer known")]
    Forgotten,
    #[error("{}", error_text(.0))]
    Directory(io::Error),
    #[error(transparent)]
    Program(#[from] launch::Unusable),
}

impl TaskActor {
    /// Its turn has come: that is recorded, then it is started.
    pub(super) async fn take_turn(&mut self) {
        crash::point("queue.turn-come");
        self.learn(Input::Admitted).await;
        // Only what is durable counts; and one that is being stopped begins nothing.
        if is_told_to_begin(&self.ends.state.borrow()) {
            crash::point("queue.admitted");
            self.launch_waiting().await;
        }
    }

    /// Starts a task whose turn is on record, and that has not been started.
    pub(super) async fn launch_waiting(&mut self) {
        match self.ready().await {
            Ok((executable, env)) => self.launch(&executable, &env).await,
            Err(unready) => {
                let failure = self.failure(unready);
                self.learn(Input::SpawnFailed(failure)).await;
            }
        }
    }

    /// The same where another server may have come to it: whatever is about to begin still finds the
    /// place of its file taken, or takes it before us, and then we find it there.
    pub(super) async fn launch_again(&mut self) {
        match self.shared.parts.task_dir.remove(&self.life.task.id) {
            Ok(()) => {
                crash::point("queue.launch-again");
                self.launch_waiting().await;
            }
            Err(error) => self.look_again(&error),
        }
    }

    async fn ready(&self) -> Result<(Executable, EnvBlock), Unready> {
        let (parts, task) = (&self.shared.parts, &self.life.task);
        let request = parts.journal.waiting_request(task).await?;
        let request = request.ok_or(Unready::Forgotten)?;
        let directory = &task.spec.working_directory;
        launch::check_directory(directory).map_err(Unready::Directory)?;
        let path = parts.base_env.path(&request);
        let executable = launch::resolve(&task.spec.command, directory, path)?;
        Ok((executable, self.environment(&request)))
    }

    fn failure(&self, unready: Unready) -> SpawnFailure {
        let (operation, errno) = match &unready {
            Unready::Journal(_) | Unready::Forgotten => ("read its request".to_owned(), None),
            Unready::Directory(error) => {
                let directory = self.life.task.spec.working_directory.display();
                (format!("enter {directory}"), error.raw_os_error())
            }
            Unready::Program(unusable) => (
                "execute its program".to_owned(),
                unusable.source.raw_os_error(),
            ),
        };
        SpawnFailure {
            operation,
            message: unready.to_string(),
            errno: errno.unwrap_or(0),
        }
    }

    /// Asks those to stop whom this task is to replace, now that it is on record that it will.
    pub(super) fn clear_way(&self) {
        let rivals = self.shared.registry.rivals(&self.life.task);
        if rivals.is_empty() {
            return;
        }
        let request = CancelRequest {
            cause: StopCause::Replaced,
            mode: None,
            actor: Actor {
                name: Some("heeler".to_owned()),
                uid: None,
                pid: None,
            },
            reason: Some(format!("replaced by {}", self.life.task.id)),
            cascade: Cascade::Alone,
        };
        for rival in rivals {
            let (presence, request) = (Presence::of(&self.shared), request.clone());
            tokio::spawn(async move { stop(&presence, &rival, request).await });
        }
    }
}

impl Supervisor {
    /// A task that has a file has begun, though the journal may have lost the fact that its turn had
    /// come, to damage or with the power.
    pub(super) fn as_begun(&self, mut task: Arc<Task>) -> Arc<Task> {
        let path = self.parts().task_dir.path(&task.id);
        if task.is_waiting() && path.symlink_metadata().is_ok() {
            tracing::warn!(task = %task.id, "it has begun, and is recorded as waiting");
            let admitted = Some(task.created);
            Arc::make_mut(&mut task).queued = Some(Queued { admitted });
        }
        task
    }
}

/// Whether its turn is on record, and nothing else is.
pub(super) fn is_told_to_begin(task: &Task) -> bool {
    let queued = task.queued.as_ref();
    queued.is_some_and(|queued| queued.admitted.is_some())
        && task.is_live()
        && task.started.is_none()
        && task.stop.is_none()
}

/// Until it is on record that it has to stop, or the server leaves that to the next one.
async fn stop(Presence(shared): &Presence, rival: &Handle, request: CancelRequest) {
    while let Some(Err(error)) = rival.cancel(request.clone()).await {
        if *shared.leaving.borrow() {
            return;
        }
        tracing::error!(task = %rival.task().id, %error, "cannot be replaced yet");
        tokio::time::sleep(STORAGE_RETRY).await;
    }
}
