//! The wait statuses of the tree: the leader's exit, resource use, and the proof that no process is left.
//!
//! The shim is the parent of the leader and of every orphan among its descendants. So the kernel's
//! answer that the shim has no child proves that the tree is empty.

use heeler_shim::{record::Exit, stamp::Stamp};

use crate::program::{
    clock,
    sys::{Errno, process},
};

/// The most children reaped in one call: a tree that ends thousands of processes a second must not
/// block everything else.
const BATCH: usize = 256;

/// Reaps the processes of a tree.
pub(crate) struct Reaper {
    leader: Leader,
    childless: bool,
    /// The last call may have left children to reap.
    more: bool,
    cpu_micros: u64,
    max_memory: u64,
}

#[derive(Clone, Copy)]
enum Leader {
    /// The pid cannot be reused before it is reaped.
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
            childless: false,
            more: false,
            cpu_micros: 0,
            max_memory: 0,
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
                Ok(None) => return count,
                Err(Errno::ECHILD) => {
                    self.childless = true;
                    return count;
                }
                Err(_) => return count,
            }
        }
        self.more = true;
        BATCH
    }

    /// The leader's pid, which is also its group and session, until it is reaped.
    pub(crate) fn leader(&self) -> Option<u32> {
        match self.leader {
            Leader::Unreaped { pid } => Some(pid),
            Leader::Reaped { .. } => None,
        }
    }

    pub(crate) fn leader_exit(&self) -> Option<(Exit, Stamp)> {
        match self.leader {
            Leader::Unreaped { .. } => None,
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

    /// CPU time of all reaped processes.
    pub(crate) fn cpu_micros(&self) -> u64 {
        self.cpu_micros
    }

    /// The largest resident memory of a reaped process, in bytes.
    pub(crate) fn max_memory(&self) -> u64 {
        self.max_memory
    }

    fn account(&mut self, ended: &process::Ended) {
        self.cpu_micros = self.cpu_micros.saturating_add(ended.cpu_micros);
        self.max_memory = self.max_memory.max(ended.max_memory);
        if self.leader() == Some(ended.pid) {
            let (exit, time) = (exit_of(ended.status), clock::stamp());
            self.leader = Leader::Reaped { exit, time };
        }
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
