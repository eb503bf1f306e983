//! The wait statuses of the tree: the leader's exit, resource use, and the proof that no process is left.
//!
//! The shim is the parent of the leader and of every orphan among its descendants. So the kernel's
//! answer that the shim has no child proves that the tree is empty.
//!
//! Processes that fork and exit without pause are reaped by the kernel: a shim that may not have a better
//! priority than they would reap fewer than they leave behind, until the machine has no pids left. Only
//! the leader's wait status is needed. It comes from a handle then, or the leader was reaped before.

use heeler_shim::{record::Exit, stamp::Stamp};

use crate::program::{
    clock,
    sys::{
        Errno, Fd, process,
        signals::{self, Reaping},
    },
};

/// The most children reaped in one call: a tree that ends thousands of processes a second must not
/// block everything else.
const BATCH: usize = 256;
/// The number of checks, a millisecond apart, for the status of a leader that the kernel has reaped. It is
/// there at once, unless the process that ends is interrupted in the middle of that.
const STATUS_CHECKS: u32 = 5000;

/// Reaps the processes of a tree.
pub(crate) struct Reaper {
    leader: Leader,
    /// A handle on the leader, since the kernel has begun to reap.
    leader_handle: Option<Fd>,
    reaping: Reaping,
    /// True if the kernel may have reaped processes.
    is_incomplete: bool,
    status_checks: u32,
    childless: bool,
    /// The last call may have left children to reap.
    more: bool,
    cpu_micros: u64,
    max_memory: u64,
}

#[derive(Clone, Copy)]
enum Leader {
    /// There is none, and no other process.
    None,
    /// Not reaped as far as is known. While the shim reaps, its pid cannot be reused.
    Unreaped {
        pid: u32,
    },
    Reaped {
        exit: Exit,
        time: Stamp,
    },
}

impl Reaper {
    pub(crate) fn new(leader: u32) -> Self {
        Self {
            leader: Leader::Unreaped { pid: leader },
            leader_handle: None,
            reaping: Reaping::Own,
            is_incomplete: false,
            status_checks: 0,
            childless: false,
            more: false,
            cpu_micros: 0,
            max_memory: 0,
        }
    }

    /// The reaper of a tree whose leader could not be started.
    pub(crate) fn without_leader() -> Self {
        Self {
            leader: Leader::None,
            childless: true,
            ..Self::new(0)
        }
    }

    /// Reaps the children that have ended, and passes their pids to `each`; returns their number.
    pub(crate) fn reap(&mut self, mut each: impl FnMut(u32)) -> usize {
        self.more = false;
        for count in 0..BATCH {
            match process::wait_any() {
                Ok(Some(ended)) => {
                    each(ended.pid);
                    self.account(&ended);
                }
                Err(Errno::ECHILD) => {
                    self.look_at_leader();
                    self.childless = self.leader_exit().is_some() || self.is_status_missing();
                    return count;
                }
                Ok(None) | Err(_) => {
                    self.look_at_leader();
                    return count;
                }
            }
        }
        self.more = true;
        BATCH
    }

    /// Lets the kernel reap, if the leader's wait status can still be had.
    pub(crate) fn leave_to_kernel(&mut self) {
        if self.reaping == Reaping::Kernel {
            return;
        }
        if let Leader::Unreaped { pid } = self.leader {
            match signals::handle(pid) {
                Ok(handle) if self.kernel_keeps_statuses() => self.leader_handle = Some(handle),
                Ok(_) | Err(_) => return,
            }
        }
        if signals::set_reaping(Reaping::Kernel).is_ok() {
            self.reaping = Reaping::Kernel;
            self.is_incomplete = true;
        }
    }

    /// Reaps again. Children that have ended meanwhile are gone.
    pub(crate) fn take_back(&mut self) {
        if self.reaping == Reaping::Kernel && signals::set_reaping(Reaping::Own).is_ok() {
            self.reaping = Reaping::Own;
        }
        // Before another child is reaped, whose pid may be that of a leader which is gone.
        self.look_at_leader();
    }

    /// Returns whether the kernel reaps, so that the pid of a child may be reused at any time.
    pub(crate) fn is_left_to_kernel(&self) -> bool {
        self.reaping == Reaping::Kernel
    }

    /// Finds out, by a child that has ended, whether a handle still knows the status of a reaped process.
    fn kernel_keeps_statuses(&mut self) -> bool {
        let Some(pid) = process::ended_child() else {
            return false;
        };
        let Ok(handle) = signals::handle(pid) else {
            return false;
        };
        match process::wait_for(pid) {
            Ok(Some(ended)) => {
                self.account(&ended);
                process::reaped_status(&handle) == Some(ended.status)
            }
            Ok(None) | Err(_) => false,
        }
    }

    /// Takes the status of a leader that the kernel has reaped.
    fn look_at_leader(&mut self) {
        if let (Leader::Unreaped { .. }, Some(handle)) = (self.leader, &self.leader_handle)
            && let Some(status) = process::reaped_status(handle)
        {
            self.note_leader(status);
        }
    }

    /// Counts the checks for a leader's status that does not come; returns whether there were enough.
    fn is_status_missing(&mut self) -> bool {
        self.status_checks += 1;
        self.status_checks > STATUS_CHECKS
    }

    /// Returns whether the status of a leader that is gone is still to come.
    pub(crate) fn awaits_status(&self) -> bool {
        self.status_checks > 0 && !self.childless
    }

    /// Signals the leader's process group, also after the leader's end if there is a handle.
    pub(crate) fn signal_leader_group(&self, signal: i32) {
        let _ = match (&self.leader_handle, self.leader()) {
            (Some(handle), _) => signals::send_to_group_of(handle, signal),
            (None, Some(group)) => signals::send_to_group(group, signal),
            (None, None) => Ok(()),
        };
    }

    /// The leader's pid, which is also its group and session, until it is reaped.
    pub(crate) fn leader(&self) -> Option<u32> {
        match self.leader {
            Leader::Unreaped { pid } => Some(pid),
            Leader::None | Leader::Reaped { .. } => None,
        }
    }

    pub(crate) fn leader_exit(&self) -> Option<(Exit, Stamp)> {
        match self.leader {
            Leader::None | Leader::Unreaped { .. } => None,
            Leader::Reaped { exit, time } => Some((exit, time)),
        }
    }

    /// Returns whether no process is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.childless
    }

    /// Returns whether there may be children to reap without a further signal.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// Returns whether the resource use lacks that of processes which the kernel has reaped.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// CPU time of all processes that were reaped here.
    pub(crate) fn cpu_micros(&self) -> u64 {
        self.cpu_micros
    }

    /// The largest resident memory of such a process, in bytes.
    pub(crate) fn max_memory(&self) -> u64 {
        self.max_memory
    }

    fn account(&mut self, ended: &process::Ended) {
        self.cpu_micros = self.cpu_micros.saturating_add(ended.cpu_micros);
        self.max_memory = self.max_memory.max(ended.max_memory);
        if self.leader() == Some(ended.pid) {
            self.note_leader(ended.status);
        }
    }

    fn note_leader(&mut self, status: i32) {
        let (exit, time) = (exit_of(status), clock::stamp());
        self.leader = Leader::Reaped { exit, time };
    }
}

/// Decodes a wait status: a signal in the low seven bits with the core dump flag above them, else a code.
fn exit_of(status: i32) -> Exit {
    match status & 0x7F {
        0 => Exit::Code(status >> 8 & 0xFF),
        number => Exit::Signal {
            number,
            core_dumped: status & 0x80 != 0,
        },
    }
}
