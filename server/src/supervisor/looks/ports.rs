//! The listening ports of live tasks.

use std::collections::BTreeSet;

use tokio::task::spawn_blocking;

use crate::supervisor::Supervisor;
use crate::{
    process::tree::{
        TreeRoot,
        owner::{Owner, owner},
        ports::{self, ListeningPort},
    },
    task::TaskId,
};

impl Supervisor {
    /// Reads the ports on which each of these tasks listens; none for a task that is not live.
    pub(crate) async fn ports(&self, tasks: &[TaskId]) -> Vec<Vec<ListeningPort>> {
        let roots: Vec<TreeRoot> = tasks.iter().map(|id| self.tree_root(id)).collect();
        // A thread that may block: a process that hangs can block the read of its /proc files.
        let read = spawn_blocking(move || ports::of_trees(&roots)).await;
        read.unwrap_or_else(|_| vec![Vec::new(); tasks.len()])
    }

    /// Finds the live tasks that listen on a port, whichever processes of theirs do.
    pub(crate) async fn listening_on(&self, port: u16) -> BTreeSet<TaskId> {
        let mut tasks = self.shared.registry.known();
        tasks.extend(self.shared.probes.known());
        let containment = self.shared.parts.containment.clone();
        let look = move || {
            let owners = ports::listeners(port)
                .into_iter()
                .map(|process| owner(&process, &tasks, &containment));
            let task = |owner| match owner {
                Owner::Task(id) => Some(id),
                Owner::None | Owner::Unknown => None,
            };
            owners.filter_map(task).collect()
        };
        spawn_blocking(look).await.unwrap_or_default()
    }

    pub(in crate::supervisor) fn tree_root(&self, id: &TaskId) -> TreeRoot {
        let handle = self.live(id);
        TreeRoot {
            cgroup: handle
                .as_ref()
                .and_then(|_| self.shared.parts.containment.leaf(id)),
            shim: handle.and_then(|handle| handle.shim_process()),
        }
    }
}
