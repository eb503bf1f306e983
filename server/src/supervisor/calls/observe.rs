//! Looks at a task for the service: its processes, and the end of its output.

use std::{io, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use crate::supervisor::Supervisor;
use crate::{
    process::{
        task_file::{TaskDir, TaskFile},
        tree::{
            self, Tree,
            ports::{self, ListeningPort},
        },
    },
    task::{Gap, Tail, Task},
};

/// Up to this size a read is faster than a switch to another thread.
const SHORT_TAIL: usize = 4096;

/// The operating system's view of a task.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) tail: Tail,
    /// Bytes of disk that the task's file takes.
    pub(crate) stored_bytes: u64,
    /// The output that is missing by rule.
    pub(crate) gaps: Vec<Gap>,
    /// Empty for a finished task.
    pub(crate) tree: Tree,
    pub(crate) ports: Vec<ListeningPort>,
}

impl Supervisor {
    /// Looks at the processes of a task and at the last `tail_bytes` of its output.
    pub(crate) async fn observe(
        &self,
        task: &Arc<Task>,
        tail_bytes: usize,
    ) -> io::Result<Observed> {
        let task_dir = &self.shared.parts.task_dir;
        if !task.is_live() && tail_bytes <= SHORT_TAIL {
            return observe(task_dir, task, tail_bytes);
        }
        let (task_dir, task) = (task_dir.clone(), Arc::clone(task));
        let root = self.tree_root(&task.id);
        // A process that hangs can block the read of its /proc files.
        let observed = spawn_blocking(move || {
            let observed = observe(&task_dir, &task, tail_bytes)?;
            let ports = ports::of_read_tree(&root, &observed.tree);
            Ok(Observed { ports, ..observed })
        });
        observed.await.map_err(io::Error::other)?
    }
}

fn observe(task_dir: &TaskDir, task: &Task, tail_bytes: usize) -> io::Result<Observed> {
    // A finished task without output needs no look at its file.
    if !task.is_live() && task.output_bytes == 0 {
        return Ok(Observed::default());
    }
    let Some(file) = task_dir.open(&task.id)? else {
        return Ok(Observed::default());
    };
    let tree = match task.is_live() {
        true => tree_of(&file)?,
        false => Tree::default(),
    };
    Ok(Observed {
        tail: file.tail(tail_bytes)?,
        stored_bytes: file.stored()?,
        gaps: file.gaps()?,
        tree,
        ports: Vec::new(),
    })
}

/// The processes below the task's shim. If the shim has another task meanwhile, this one has ended and
/// its tree is empty.
fn tree_of(file: &TaskFile) -> io::Result<Tree> {
    let Some(shim) = file.records()?.identity.whole() else {
        return Ok(Tree::default());
    };
    let cpu_before = Duration::from_micros(shim.cpu_before_micros);
    let mut tree = tree::below(shim.into());
    tree.cpu = tree.cpu.saturating_sub(cpu_before);
    Ok(match file.records()?.tree_end.whole() {
        Some(_) => Tree::default(),
        None => tree,
    })
}
