//! Looks at whether a task is ready. They run outside of the task's actor, and are bounded in number.
//!
//! | probe | look | needs |
//! | --- | --- | --- |
//! | port | the listening sockets of the tree | a thread that is there from the start |
//! | HTTP URL | a request (`http`) | a connection |
//! | command | a run of the command (`command`) | a shim, as a task does |
//! | pattern | none: the actor searches the output | |

mod command;
mod http;

use std::{
    collections::HashSet,
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, Semaphore, oneshot},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

pub(in crate::supervisor) use command::{Environment, clear_leftover};
pub(crate) use http::HostNotAllowed;
pub(in crate::supervisor) use http::check_host;

use crate::supervisor::{JobGuard, Shared, lifecycle::Probed};
use crate::{
    process::tree::{TreeRoot, owner::KnownTask, ports},
    task::{Probe, Ready, TaskId},
};

/// The most looks of each kind at a time; further ones wait. A look at ports takes a thread, a request
/// takes a descriptor, and a command takes processes.
const PORT_LOOKS: usize = 4;
const REQUESTS: usize = 256;
const COMMANDS: usize = 64;
/// The bounds of the time limit of a look, which is the interval in between.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);
const LONGEST_LIMIT: Duration = Duration::from_secs(30);

/// The bounds of the looks at all tasks, and the commands that run.
#[derive(Debug)]
pub(in crate::supervisor) struct Probes {
    port_looks: Semaphore,
    requests: Semaphore,
    commands: Semaphore,
    running: Mutex<Vec<KnownTask>>,
    /// The tasks that have a turn, and the end of a turn.
    turns: Mutex<HashSet<TaskId>>,
    turn_ended: Notify,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            port_looks: Semaphore::new(PORT_LOOKS),
            requests: Semaphore::new(REQUESTS),
            commands: Semaphore::new(COMMANDS),
            running: Mutex::default(),
            turns: Mutex::default(),
            turn_ended: Notify::new(),
        }
    }
}

impl Probes {
    /// The commands that run, each as the task that it looks at.
    pub(in crate::supervisor) fn known(&self) -> Vec<KnownTask> {
        self.running().clone()
    }

    fn running(&self) -> MutexGuard<'_, Vec<KnownTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the turn for this task.
    async fn turn(&self, task: &TaskId) -> Turn<'_> {
        loop {
            let ended = self.turn_ended.notified();
            match self.try_turn(task) {
                Some(turn) => return turn,
                None => ended.await,
            }
        }
    }

    fn try_turn(&self, task: &TaskId) -> Option<Turn<'_>> {
        let is_free = self.turns().insert(task.clone());
        is_free.then(|| Turn {
            probes: self,
            task: task.clone(),
        })
    }

    fn turns(&self) -> MutexGuard<'_, HashSet<TaskId>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sole right to start and to end commands that look at one task, until it is dropped. They share
/// the path of their file and their cgroup.
struct Turn<'a> {
    probes: &'a Probes,
    task: TaskId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.probes.turns().remove(&self.task);
        self.probes.turn_ended.notify_waiters();
    }
}

/// One look at a task.
#[derive(Debug)]
pub(in crate::supervisor) struct Look {
    pub(in crate::supervisor) task: TaskId,
    pub(in crate::supervisor) ready: Ready,
    pub(in crate::supervisor) root: TreeRoot,
    pub(in crate::supervisor) directory: PathBuf,
    pub(in crate::supervisor) environment: Environment,
}

/// Resolves when the look is no longer wanted.
type Unwanted = oneshot::Receiver<Infallible>;

/// A look that is under way. Dropping it ends the look, and its processes if it has any.
#[derive(Debug)]
pub(in crate::supervisor) struct RunningLook {
    wanted: Option<oneshot::Sender<Infallible>>,
    result: JoinHandle<Probed>,
}

impl RunningLook {
    pub(in crate::supervisor) fn start(shared: &Arc<Shared>, look: Look) -> Self {
        let (wanted, unwanted) = oneshot::channel();
        // A command is ended before the server is.
        let job = JobGuard::new(shared);
        let result = tokio::spawn(async move { look.take(&job.0, unwanted).await });
        Self {
            wanted: Some(wanted),
            result,
        }
    }

    /// Waits for the result. Cancel safe.
    pub(in crate::supervisor) async fn result(&mut self) -> Probed {
        let result = (&mut self.result).await;
        result.unwrap_or(Probed::NotYet)
    }

    /// Begins to end the look.
    pub(in crate::supervisor) fn stop(&mut self) {
        self.wanted = None;
    }

    /// Ends the look, and waits for its end for at most this time.
    pub(in crate::supervisor) async fn end(mut self, within: Duration) {
        self.stop();
        let _ = timeout(within, self.result()).await;
    }
}

impl Look {
    async fn take(self, shared: &Shared, unwanted: Unwanted) -> Probed {
        let limit = self.ready.interval.clamp(SHORTEST_LIMIT, LONGEST_LIMIT);
        match &self.ready.probe {
            Probe::Command(argv) => command::run(shared, &self, argv, limit, unwanted).await,
            Probe::Port(port) => unless(unwanted, self.port(shared, *port)).await,
            Probe::HttpUrl(url) => unless(unwanted, get(shared, url, limit)).await,
            Probe::Pattern(_) => Probed::NotYet,
        }
    }

    async fn port(&self, shared: &Shared, port: Option<u16>) -> Probed {
        let _permit = shared.probes.port_looks.acquire().await;
        let root = self.root.clone();
        let ports = spawn_blocking(move || ports::of_tree(&root)).await;
        let is_wanted = |found: u16| port.is_none_or(|port| port == found);
        let mut ports = ports.unwrap_or_default().into_iter();
        as_probed(ports.any(|found| is_wanted(found.port)))
    }
}

async fn get(shared: &Shared, url: &str, limit: Duration) -> Probed {
    let _permit = shared.probes.requests.acquire().await;
    match timeout(limit, http::get(url, shared.parts.probe_hosts)).await {
        Ok(Ok(status)) => as_probed(status.is_success() || status.is_redirection()),
        Ok(Err(error)) => {
            tracing::debug!(url, %error, "a task is not ready yet");
            Probed::NotYet
        }
        Err(_) => Probed::NotYet,
    }
}

async fn unless(unwanted: Unwanted, look: impl Future<Output = Probed>) -> Probed {
    tokio::select! {
        _ = unwanted => Probed::NotYet,
        probed = look => probed,
    }
}

fn as_probed(is_ready: bool) -> Probed {
    match is_ready {
        true => Probed::Ready,
        false => Probed::NotYet,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Y1
    #[tokio::test]
    async fn one_at_a_time_has_the_turn_for_a_task() {
        let probes = Probes::default();
        let one: TaskId = "shell-aaaaaaaaaa".parse().unwrap();
        let other: TaskId = "shell-aaaaaaaaab".parse().unwrap();
        let turn = probes.turn(&one).await;
        assert!(probes.try_turn(&one).is_none());
        assert!(probes.try_turn(&other).is_some());
        let (_next, ()) = tokio::join!(probes.turn(&one), async { drop(turn) });
        assert!(probes.try_turn(&one).is_none());
    }
}
