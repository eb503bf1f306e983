//! The descendants of a shim that does not answer: killed and described without its help.
//!
//! A pid counts only if the process names the expected parent while that parent is not reaped. Nothing
//! here waits for a process that hangs in the kernel, and nothing needs a thread: the walk of a large
//! tree lets other work of the runtime run in between.

use std::{
    collections::HashSet,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal,
};

use super::{
    BUFFER, Stat, children, command_line, pidfd_open, pidfd_signal, procfs, read_beginning, stat,
};
use crate::task::Survivor;

/// The largest tree that is looked at.
const LARGEST: usize = 16 * 1024;
/// The number of processes between two pauses for other work.
const STRETCH: usize = 32;

/// A descendant, distinguished by its start time from a later process with the same pid.
struct Found {
    pid: i32,
    stat: Stat,
}

/// Kills the descendants of a process once, the youngest generations first; returns the number that were
/// alive.
pub(in crate::process) async fn kill_below(pid: i32, start_ticks: u64) -> usize {
    let mut alive = 0;
    for (count, found) in walk(pid, start_ticks).await.iter().rev().enumerate() {
        if let Some(pidfd) = found.pin()
            && !has_ended(&pidfd)
        {
            // An error means that it has just ended.
            let _ = pidfd_signal(&pidfd, Signal::SIGKILL);
            alive += 1;
        }
        pause_after(count).await;
    }
    alive
}

/// Describes the descendants of a process, each after its parent.
pub(in crate::process) async fn survivors_below(pid: i32, start_ticks: u64) -> Vec<Survivor> {
    let mut survivors = Vec::new();
    for (count, found) in walk(pid, start_ticks).await.iter().enumerate() {
        survivors.push(found.describe());
        pause_after(count).await;
    }
    survivors
}

/// Finds the descendants of a process, breadth first.
async fn walk(pid: i32, start_ticks: u64) -> Vec<Found> {
    let mut found = Vec::new();
    let mut listed = HashSet::from([pid]);
    if let Some(stat) = live_stat(pid, start_ticks) {
        find_children(pid, &stat, &mut found, &mut listed);
    }
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let pid = parent.pid;
        if let Some(stat) = live_stat(pid, parent.stat.start_ticks) {
            find_children(pid, &stat, &mut found, &mut listed);
        }
        next += 1;
        pause_after(next).await;
    }
    found
}

/// The status of the process with this start time, until it is reaped.
fn live_stat(pid: i32, start_ticks: u64) -> Option<Stat> {
    stat(pid)
        .ok()
        .filter(|stat| stat.start_ticks == start_ticks)
}

/// Appends the children of a process that are not listed yet.
fn find_children(pid: i32, parent: &Stat, found: &mut Vec<Found>, listed: &mut HashSet<i32>) {
    let before = found.len();
    for child in children(pid, parent.threads) {
        if let Ok(stat) = stat(child)
            && stat.parent_pid == pid
            && found.len() < LARGEST
            && listed.insert(child)
        {
            found.push(Found { pid: child, stat });
        }
    }
    // A reaped parent's pid may be another process's by now.
    if live_stat(pid, parent.start_ticks).is_none() {
        for other in found.drain(before..) {
            listed.remove(&other.pid);
        }
    }
}

impl Found {
    fn pin(&self) -> Option<OwnedFd> {
        let pidfd = pidfd_open(self.pid).ok()?;
        (super::start_ticks(self.pid) == Some(self.stat.start_ticks)).then_some(pidfd)
    }

    fn describe(&self) -> Survivor {
        let mut buffer = [0; BUFFER];
        // The command line of a process that hangs in the kernel may not be readable, ever.
        let line = match self.hangs() {
            true => &[],
            false => {
                let path = format!("/proc/{}/cmdline", self.pid);
                read_beginning(&path, &mut buffer).unwrap_or_default()
            }
        };
        Survivor {
            pid: self.pid,
            parent_pid: self.stat.parent_pid,
            command: command_line(line, &self.stat.name),
            state: self.stat.state.to_string(),
        }
    }

    /// Returns whether a thread of it is in an uninterruptible wait.
    fn hangs(&self) -> bool {
        procfs::thread_stats(self.pid).any(|stat| stat.state == 'D')
    }
}

/// Returns whether the last thread has exited: the process's descriptor is readable then.
fn has_ended(pidfd: &OwnedFd) -> bool {
    let mut polls = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut polls, PollTimeout::ZERO), Ok(1..))
}

async fn pause_after(count: usize) {
    if count.is_multiple_of(STRETCH) {
        tokio::task::yield_now().await;
    }
}
