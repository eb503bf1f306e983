//! Reads for the service: the output of a task, and its processes.

use std::{io, sync::Arc, time::Duration};

use tokio::task::spawn_blocking;

use super::Supervisor;
use crate::{
    process::{
        task_file::{Reading, TaskDir, TaskFile},
        tree::{self, Tree},
    },
    task::{Tail, Task, TaskId},
};

/// Up to this size a read is faster than a switch to another thread.
const SHORT_TAIL: usize = 4096;

/// The place in the output at which a read starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputStart {
    Offset(u64),
    /// This many bytes before the end.
    TailBytes(u64),
}

/// The operating system's view of a task.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) tail: Tail,
    /// Empty for a finished task.
    pub(crate) tree: Tree,
}

impl Supervisor {
    /// Reads up to `max_bytes` of a task's output; returns the offset that `start` stands for, too.
    pub(crate) async fn read_output(
        &self,
        id: &TaskId,
        start: OutputStart,
        max_bytes: usize,
    ) -> io::Result<(u64, Reading)> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), id.clone());
        let read = spawn_blocking(move || read_output(&task_dir, &id, start, max_bytes)).await;
        read.map_err(io::Error::other)?
    }

    /// The size of a task's output.
    pub(crate) async fn output_end(&self, id: &TaskId) -> io::Result<u64> {
        let (end, _) = self.read_output(id, OutputStart::TailBytes(0), 0).await?;
        Ok(end)
    }

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
        // A process that hangs can block the read of its /proc files.
        let observed = spawn_blocking(move || observe(&task_dir, &task, tail_bytes)).await;
        observed.map_err(io::Error::other)?
    }
}

fn read_output(
    task_dir: &TaskDir,
    id: &TaskId,
    start: OutputStart,
    max_bytes: usize,
) -> io::Result<(u64, Reading)> {
    let file = task_dir.open(id)?;
    let offset = match (start, &file) {
        (OutputStart::Offset(offset), _) => offset,
        (OutputStart::TailBytes(_), None) => 0,
        (OutputStart::TailBytes(bytes), Some(file)) => file.tail(0)?.end.saturating_sub(bytes),
    };
    let reading = file.map_or(Ok(Reading::default()), |file| file.read(offset, max_bytes))?;
    Ok((offset, reading))
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
        tree,
    })
}

/// The processes below the task's shim. If the shim has another task meanwhile, this one has ended and
/// its tree is empty.
fn tree_of(file: &TaskFile) -> io::Result<Tree> {
    let Some(shim) = file.records()?.identity.whole() else {
        return Ok(Tree::default());
    };
    let cpu_before = Duration::from_micros(shim.cpu_before_micros);
    let mut tree = tree::below(shim.shim_pid as i32);
    tree.cpu = tree.cpu.saturating_sub(cpu_before);
    Ok(match file.records()?.tree_end.whole() {
        Some(_) => Tree::default(),
        None => tree,
    })
}
