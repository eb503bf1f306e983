//! The rights of callers: the task that a process is inside of, and the tokens of tasks.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::Supervisor;
use crate::{
    process::tree::{
        caller::{self, Caller},
        owner::PinnedProcess,
    },
    task::{Authority, Rights, SpawnRequest, Task, TaskId},
};

/// Separates the id of a task from the rest of its token.
const SEPARATOR: char = ':';
/// Separates the task that has made a request from the request's own id. No id of a task has it.
const REQUESTER: char = '/';

impl Supervisor {
    /// Finds the task that a process is inside of.
    pub(crate) async fn caller(&self, process: Arc<PinnedProcess>) -> Caller {
        let shared = Arc::clone(&self.shared);
        let found = spawn_blocking(move || {
            let live = || {
                let mut live = shared.registry.known();
                live.extend(shared.probes.known());
                live
            };
            let parts = &shared.parts;
            caller::caller(&process, live, (&parts.containment, &parts.task_dir))
        });
        found.await.unwrap_or(Caller::Unknown)
    }

    /// The rights of the processes of a task; `None` if it is not live.
    pub(crate) fn authority_of(&self, id: &TaskId) -> Option<Authority> {
        let task = self.live(id)?.task();
        task.is_live().then(|| Authority::Task {
            id: task.id.clone(),
            rights: task.spec.rights,
        })
    }

    /// The rights that the token of a live task gives.
    pub(crate) fn task_with_token(&self, token: &str) -> Option<Authority> {
        let (id, secret) = token.split_once(SEPARATOR)?;
        let id: TaskId = id.parse().ok()?;
        let task = self.live(&id)?.task();
        let is_its_own = self.journal().is_task_secret(task.uid, secret);
        is_its_own.then(|| self.authority_of(&id)).flatten()
    }

    /// Applies the rights of a caller inside of a task to its request. The new task is its child, and has no
    /// more rights than it. Its request ids are its own: those of others name requests that it must not see.
    pub(crate) fn nested(authority: &Authority, mut request: SpawnRequest) -> SpawnRequest {
        let Authority::Task { id, rights } = authority else {
            return request;
        };
        let spec = &mut request.spec;
        spec.rights = spec.rights.min(*rights);
        if *rights < Rights::All || spec.parent.is_none() {
            spec.parent = Some(id.clone());
        }
        let own = |given: String| format!("{id}{REQUESTER}{given}");
        request.request_id = request.request_id.map(own);
        request
    }
}

/// The token of a task, which its processes present over TCP.
pub(super) fn token_of(supervisor: &super::Shared, task: &Task) -> String {
    let secret = supervisor.parts.journal.task_secret(task.uid);
    format!("{}{SEPARATOR}{secret}", task.id)
}
