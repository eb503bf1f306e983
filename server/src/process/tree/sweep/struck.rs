//! The processes that were signalled and may not be dead yet.

use std::{
    collections::HashMap,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::Signal,
};

use super::super::{pidfd_open, pidfd_signal};

/// The most descriptors kept: a large tree must not use up those of the server.
const MOST: usize = 512;

/// A look at a process by its pid.
pub(super) enum Pinned {
    Alive(OwnedFd),
    /// It waits to be reaped.
    Dead,
    /// It was there, and is gone or another one's by now, or cannot be pinned.
    Lost,
}

/// Pins the process that has this pid, if it is still the one that is meant.
pub(super) fn pin(pid: i32, is_ours: impl Fn() -> bool) -> Pinned {
    match pidfd_open(pid) {
        Ok(pidfd) if is_dead(&pidfd) => Pinned::Dead,
        // Checked while the descriptor pins it: the pid may have been reused.
        Ok(pidfd) if is_ours() => Pinned::Alive(pidfd),
        Ok(_) | Err(_) => Pinned::Lost,
    }
}

/// Descriptors of signalled processes. A second look may miss one, because what it was found by can go
/// before it does.
#[derive(Debug, Default)]
pub(super) struct Struck(HashMap<i32, OwnedFd>);

impl Struck {
    /// Signals a process. An error means that it is gone, or that this user may not.
    pub(super) fn strike(&mut self, pid: i32, pidfd: OwnedFd, signal: Signal) {
        let _ = pidfd_signal(&pidfd, signal);
        if self.0.len() >= MOST {
            self.forget_dead();
        }
        // Beyond the limit the next look finds it again, if it is alive.
        if self.0.len() < MOST {
            self.0.insert(pid, pidfd);
        }
    }

    /// Returns whether the process with this pid was signalled and is not dead.
    pub(super) fn is_dying(&self, pid: i32) -> bool {
        self.0.get(&pid).is_some_and(|pidfd| !is_dead(pidfd))
    }

    /// Returns whether all are dead.
    pub(super) fn all_dead(&mut self) -> bool {
        self.forget_dead();
        self.0.is_empty()
    }

    /// The pids of those that were alive when last checked.
    pub(super) fn pids(&self) -> impl Iterator<Item = i32> {
        self.0.keys().copied()
    }

    fn forget_dead(&mut self) {
        self.0.retain(|_, pidfd| !is_dead(pidfd));
    }
}

/// A process's descriptor becomes readable when its last thread has ended.
fn is_dead(pidfd: &OwnedFd) -> bool {
    let mut polls = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut polls, PollTimeout::ZERO), Ok(1..))
}
