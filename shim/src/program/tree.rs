//! The tree, as its wait statuses tell: who has ended, what it all cost, and that nobody is left.
//!
//! We are the parent of the leader and of every orphan among its descendants, so the kernel's
//! answer that we have no child means that the tree is empty.

use heeler_shim::record::Exit;

use super::{
    clock,
    sys::{Errno, process},
};

/// How many statuses are taken at a turn: a tree that ends thousands of processes a second must not
/// keep us from anything else.
const BATCH: usize = 256;

/// What has become of the tree so far.
pub(super) struct Tree {
    leader: Leader,
    childless: bool,
    /// Whether the last turn may have left statuses behind.
    more: bool,
    cpu_micros: u64,
    max_memory: u64,
}

/// The leader's part of it.
#[derive(Clone, Copy)]
enum Leader {
    /// Its number is its own until its status is taken.
    Unreaped { pid: u32 },
    /// Ended so, then.
    Reaped { exit: Exit, time_micros: u64 },
}

impl Tree {
    /// Of a leader alone.
    pub(super) fn new(leader: u32) -> Self {
        Self {
            leader: Leader::Unreaped { pid: leader },
            childless: false,
            more: false,
            cpu_micros: 0,
            max_memory: 0,
        }
    }

    /// Takes the statuses of those that have ended, and gives their numbers to `each`; how many.
    pub(super) fn reap(&mut self, mut each: impl FnMut(u32)) -> usize {
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

    /// The leader's pid, which is also its group and its session, while that is its own.
    pub(super) fn leader(&self) -> Option<u32> {
        match self.leader {
            Leader::Unreaped { pid } => Some(pid),
            Leader::Reaped { .. } => None,
        }
    }

    /// How and when the leader ended.
    pub(super) fn leader_exit(&self) -> Option<(Exit, u64)> {
        match self.leader {
            Leader::Unreaped { .. } => None,
            Leader::Reaped { exit, time_micros } => Some((exit, time_micros)),
        }
    }

    /// Whether nobody is left.
    pub(super) fn is_empty(&self) -> bool {
        self.childless
    }

    /// Whether there may be statuses to take without any further signal.
    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// CPU time of all that have ended.
    pub(super) fn cpu_micros(&self) -> u64 {
        self.cpu_micros
    }

    /// The largest of them.
    pub(super) fn max_memory(&self) -> u64 {
        self.max_memory
    }

    fn account(&mut self, ended: &process::Ended) {
        self.cpu_micros = self.cpu_micros.saturating_add(ended.cpu_micros);
        self.max_memory = self.max_memory.max(ended.max_memory);
        if self.leader() == Some(ended.pid) {
            let (exit, time_micros) = (exit_of(ended.status), clock::now_micros());
            self.leader = Leader::Reaped { exit, time_micros };
        }
    }
}

/// A wait status: a signal in the low seven bits and the dump's flag above them, else a code.
fn exit_of(status: i32) -> Exit {
    match status & 0x7F {
        0 => Exit::Code(status >> 8 & 0xFF),
        number => Exit::Signal {
            number,
            core_dumped: status & 0x80 != 0,
        },
    }
}
