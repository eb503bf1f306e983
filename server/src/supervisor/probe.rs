//! Looks at whether a task is ready. They run outside of the task's actor, and are bounded in number.
//!
//! | probe | look | needs |
//! | --- | --- | --- |
//! | port | the listening sockets of the tree | a thread that is there from the start |
//! | HTTP URL | a request (`http`) | a connection |
//! | command | a run of the command (`command`) | a shim, as a task does |

mod command;
mod http;

use std::{
    convert::Infallible,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Semaphore, oneshot},
    task::{JoinHandle, spawn_blocking},
    time::timeout,
};

pub(super) use command::{Environment, clear};
pub(crate) use http::HostNotAllowed;
pub(super) use http::check_host;

use super::{JobGuard, Shared, lifecycle::Probed};
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
pub(super) struct Probes {
    port_looks: Semaphore,
    requests: Semaphore,
    commands: Semaphore,
    running: Mutex<Vec<KnownTask>>,
}

impl Default for Probes {
    fn default() -> Self {
        Self {
            port_looks: Semaphore::new(PORT_LOOKS),
            requests: Semaphore::new(REQUESTS),
            commands: Semaphore::new(COMMANDS),
            running: Mutex::default(),
        }
    }
}

impl Probes {
    /// The commands that run, each as the task that it looks at.
    pub(super) fn known(&self) -> Vec<KnownTask> {
        self.running().clone()
    }

    fn running(&self) -> MutexGuard<'_, Vec<KnownTask>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One look at a task.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) task: TaskId,
    pub(super) ready: Ready,
    pub(super) root: TreeRoot,
    pub(super) directory: PathBuf,
    pub(super) environment: Environment,
}

/// Resolves when the look is no longer wanted.
type Unwanted = oneshot::Receiver<Infallible>;

/// A look that is under way. Dropping it ends the look, and its processes if it has any.
#[derive(Debug)]
pub(super) struct RunningLook {
    wanted: Option<oneshot::Sender<Infallible>>,
    result: JoinHandle<Probed>,
}

impl RunningLook {
    pub(super) fn start(shared: &Arc<Shared>, look: Look) -> Self {
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
    pub(super) async fn result(&mut self) -> Probed {
        let result = (&mut self.result).await;
        result.unwrap_or(Probed::NotYet)
    }

    /// Begins to end the look.
    pub(super) fn stop(&mut self) {
        self.wanted = None;
    }

    /// Ends the look, and waits for its end for at most this time.
    pub(super) async fn end(mut self, within: Duration) {
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
