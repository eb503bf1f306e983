//! The idle shims, and the assignment of tasks to them.
//!
//! A shim costs an exec, and no Spawn should wait for that. So some shims are started ahead, and a shim
//! whose task has ended takes another one.

use std::{
    io,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    AfterTask, Launch, RecordSync, ShimLink, ShimProcess, ShimReport, program::ShimProgram,
};
use crate::process::task_file::TaskDir;

/// The number of idle shims that are started ahead.
const STARTED_AHEAD: usize = 2;
/// The most idle shims, including those whose task has ended.
const MOST_IDLE: usize = 16;
/// The time that a new shim has to receive a task.
const ASSIGN_WITHIN: Duration = Duration::from_secs(5);
/// The same for an idle one, which can be replaced.
const IDLE_ASSIGN_WITHIN: Duration = Duration::from_secs(1);

/// Starts shims and keeps the idle ones.
#[derive(Debug)]
pub struct ShimPool {
    program: ShimProgram,
    idle: Mutex<Vec<ShimLink>>,
}

impl ShimPool {
    /// Unpacks the shim's program. `descriptors` is the limit of open descriptors for tasks, if it is
    /// not the server's own.
    pub fn unpack(
        task_dir: &TaskDir,
        sync: RecordSync,
        descriptors: Option<u64>,
    ) -> io::Result<Self> {
        Ok(Self {
            program: ShimProgram::unpack(task_dir, sync, descriptors)?,
            idle: Mutex::default(),
        })
    }

    /// Gives a task to a shim. The shim reports on the link what becomes of it.
    pub async fn launch(&self, launch: &Launch<'_>) -> io::Result<ShimLink> {
        let assignment = launch.encode();
        loop {
            // An idle shim that has died cannot have started the task, so the next one may.
            let idle = self.idle().pop();
            let Some(mut link) = idle else { break };
            match assign(&mut link, &assignment, IDLE_ASSIGN_WITHIN).await {
                Ok(()) => return Ok(link),
                Err(_) => kill(&link),
            }
        }
        let mut link = self.program.start()?;
        assign(&mut link, &assignment, ASSIGN_WITHIN).await?;
        Ok(link)
    }

    /// Ends the idle shims that are stopped: a task or a user has stopped them, and may do so again.
    pub(crate) fn drop_stopped(&self) {
        let is_stopped = |link: &ShimLink| link.process().is_some_and(ShimProcess::is_stopped);
        self.idle().retain(|link| {
            let stopped = is_stopped(link);
            if stopped {
                kill(link);
            }
            !stopped
        });
    }

    /// Takes back a shim that waits for another task.
    pub(crate) fn give_back(&self, link: ShimLink) {
        let mut idle = self.idle();
        if idle.len() < MOST_IDLE && link.is_between_messages() {
            idle.push(link);
        }
    }

    /// Waits for a shim's report that its task has ended, and takes the shim back if it waits for
    /// another one.
    pub(crate) async fn retire(&self, mut link: ShimLink) {
        while let Some(report) = link.next().await {
            if let ShimReport::TreeEnded { shim } = report {
                match shim {
                    AfterTask::Waits => self.give_back(link),
                    AfterTask::Ends | AfterTask::Keeps => {}
                }
                return;
            }
        }
    }

    /// Returns whether [`Self::stock_up`] has something to do.
    pub(crate) fn is_short(&self) -> bool {
        self.idle().len() < STARTED_AHEAD
    }

    /// Starts shims until enough are idle. A shim that cannot be started now is started by the Spawn
    /// that needs it, which then reports the error.
    pub(crate) fn stock_up(&self) {
        while self.is_short() {
            match self.program.start() {
                Ok(link) => self.idle().push(link),
                Err(error) => {
                    tracing::warn!(%error, "could not start a shim ahead; will start it on demand");
                    return;
                }
            }
        }
    }

    /// Lets the idle shims exit; one that is stopped could not.
    pub(crate) fn dismiss(&self) {
        self.drop_stopped();
        self.idle().clear();
    }

    /// Starts a process in a cgroup, to test whether that works.
    pub(in crate::process) fn probe(&self, cgroup: &Path) -> io::Result<()> {
        self.program.probe(cgroup)
    }

    fn idle(&self) -> MutexGuard<'_, Vec<ShimLink>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a task to a shim. A shim that does not receive all of it starts nothing.
async fn assign(link: &mut ShimLink, assignment: &[u8], within: Duration) -> io::Result<()> {
    let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the shim does not take its task");
    tokio::time::timeout(within, link.send_bytes(assignment))
        .await
        .map_err(late)?
}

/// Kills a shim without a task.
fn kill(link: &ShimLink) {
    if let Some(process) = link.process() {
        process.kill();
    }
}
