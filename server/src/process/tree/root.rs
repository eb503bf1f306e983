//! The processes of a task while its shim lives: those below the shim, and those in the cgroup.

use std::{collections::BTreeSet, path::PathBuf};

use super::{shim_stat, stat, visit_below};
use crate::process::{containment, shim::ShimProcess};

/// The tree of a task, by what its processes are found by.
#[derive(Debug, Clone)]
pub(crate) struct TreeRoot {
    pub(crate) shim: Option<ShimProcess>,
    pub(crate) cgroup: Option<PathBuf>,
}

impl TreeRoot {
    /// Its processes with their start times, each after its parent.
    pub(super) fn processes(&self) -> Vec<(i32, u64)> {
        let mut found = Vec::new();
        if let Some(shim) = self.shim
            && let Some(stat) = shim_stat(shim)
        {
            visit_below(shim.pid, &stat, |pid, stat| {
                found.push((pid, stat.start_ticks));
            });
        }
        self.with_members(found)
    }

    /// The processes below the shim, as they were read before, and the others of the cgroup.
    pub(super) fn with_members(&self, mut below: Vec<(i32, u64)>) -> Vec<(i32, u64)> {
        // A process may be in the cgroup and not descend from the shim.
        if let Some(cgroup) = &self.cgroup {
            let listed: BTreeSet<i32> = below.iter().map(|(pid, _)| *pid).collect();
            let members = containment::members(cgroup).pids.into_iter();
            let others = members.filter(|pid| !listed.contains(pid));
            below.extend(others.filter_map(|pid| Some((pid, stat(pid).ok()?.start_ticks))));
        }
        below
    }
}
