//! The process of a shim. It is signalled through a descriptor that pins it, never by its pid alone.

use std::{os::fd::OwnedFd, time::Duration};

use nix::sys::signal::Signal;
use tokio::{
    io::{Interest, unix::AsyncFd},
    time::timeout,
};

use crate::{
    process::{
        host::pidfd::{pidfd_open, pidfd_signal},
        task_file::Identity,
        tree,
    },
    task::Survivor,
};

/// A shim's process, distinguished by its start time from a later one with the same pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShimProcess {
    pub(in crate::process) pid: i32,
    pub(in crate::process) start_ticks: u64,
}

impl ShimProcess {
    /// The process with this pid, which this server has just started.
    pub(super) fn started(pid: u32) -> Option<Self> {
        let pid = pid as i32;
        tree::start_ticks(pid).map(|start_ticks| Self { pid, start_ticks })
    }

    /// Reports whether it lives and has no child, zombies included.
    pub(crate) fn is_childless(self) -> bool {
        tree::is_childless(self.pid, self.start_ticks)
    }

    /// Continues it, if it is stopped: a task may have stopped its shim.
    pub(crate) fn resume(self) {
        self.signal(Signal::SIGCONT);
    }

    /// Kills it, without waiting for its end.
    pub(crate) fn kill(self) {
        self.signal(Signal::SIGKILL);
    }

    /// Kills it and waits for its end; returns whether it has ended.
    pub(crate) async fn end(self, within: Duration) -> bool {
        let Some(pidfd) = self.pin() else { return true };
        // An error means that it has ended.
        let _ = pidfd_signal(&pidfd, Signal::SIGKILL);
        // SAFETY: an `OwnedFd` names the same open descriptor until it is dropped.
        let ended = unsafe { AsyncFd::register_with_interest(pidfd, Interest::READABLE) };
        let Ok(ended) = ended else {
            return false;
        };
        timeout(within, ended.readable()).await.is_ok()
    }

    /// Returns whether it is stopped, by a signal or a tracer.
    pub(super) fn is_stopped(self) -> bool {
        tree::is_stopped(self.pid, self.start_ticks)
    }

    /// Kills its descendants once; returns the number that were alive. The shim itself is spared.
    pub(crate) async fn kill_descendants(self) -> usize {
        tree::kill_below(self.pid, self.start_ticks).await
    }

    /// Describes its descendants, dead ones that are not reaped included.
    pub(crate) async fn descendants(self) -> Vec<Survivor> {
        tree::survivors_below(self.pid, self.start_ticks).await
    }

    fn signal(self, signal: Signal) {
        if let Some(pidfd) = self.pin() {
            let _ = pidfd_signal(&pidfd, signal);
        }
    }

    fn pin(self) -> Option<OwnedFd> {
        let pidfd = pidfd_open(self.pid).ok()?;
        // Checked while the descriptor pins the process.
        (tree::start_ticks(self.pid) == Some(self.start_ticks)).then_some(pidfd)
    }
}

impl From<Identity> for ShimProcess {
    fn from(identity: Identity) -> Self {
        Self {
            pid: identity.shim_pid as i32,
            start_ticks: identity.shim_start_ticks,
        }
    }
}
