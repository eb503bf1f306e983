//! Inspect: returns one task with its processes, its resource use and the end of its output.

use std::{io, sync::Arc, time::Duration};

use heeler_proto::{Encoded, v1};

use crate::{
    process::{
        task_file::{TaskDir, TaskFile},
        tree::{self, Tree},
    },
    service::{
        Service,
        wire::{check, convert, refusal::Refusal},
    },
    task::{Tail, Task},
};

const DEFAULT_TAIL: u32 = 4096;
const LARGEST_TAIL: u32 = 256 * 1024;
/// Up to this size, reading is cheaper than waking another thread.
const SHORT_TAIL: usize = 4096;

pub(super) async fn inspect(
    service: &Service,
    request: v1::InspectRequest,
) -> Result<Encoded<v1::InspectResponse>, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let tail_bytes = request.output_tail_bytes.unwrap_or(DEFAULT_TAIL);
    if tail_bytes > LARGEST_TAIL {
        let problem = format!("is more than {LARGEST_TAIL}");
        return Err(Refusal::field("output_tail_bytes", problem));
    }
    let task = service.find(&id).await?;
    let (tail, tree) = observe(service, &task, tail_bytes as usize).await?;
    service.note_delivered(&task);
    let rest = v1::InspectResponse {
        task: None,
        resources: Some(resources(&task, &tree)),
        processes: tree.processes.iter().map(convert::process).collect(),
        output_tail: Some(convert::tail(&tail)),
        revision: task.revision.0,
        server: Some(service.info()),
    };
    Ok(Encoded::from_parts(&[service.encodings.task(&task)], &rest))
}

/// Reads the end of the output and the process tree.
async fn observe(
    service: &Service,
    task: &Arc<Task>,
    tail_bytes: usize,
) -> Result<(Tail, Tree), Refusal> {
    let unreadable = |error: io::Error| Refusal::storage("read the task's file", &error);
    let task_dir = &service.supervisor.parts().task_dir;
    if !task.is_live() && tail_bytes <= SHORT_TAIL {
        return look(task_dir, task, tail_bytes).map_err(unreadable);
    }
    let (task_dir, task) = (task_dir.clone(), Arc::clone(task));
    // A hanging process may block the reader, so it runs on a thread of its own.
    match tokio::task::spawn_blocking(move || look(&task_dir, &task, tail_bytes)).await {
        Ok(looked) => looked.map_err(unreadable),
        Err(error) => Err(Refusal::storage("look at the task's processes", &error)),
    }
}

fn look(task_dir: &TaskDir, task: &Task, tail_bytes: usize) -> io::Result<(Tail, Tree)> {
    // A finished task without output has nothing to read.
    if !task.is_live() && task.output_bytes == 0 {
        return Ok(Default::default());
    }
    let Some(file) = task_dir.open(&task.id)? else {
        return Ok(Default::default());
    };
    let tree = match task.is_live() {
        true => tree(&file)?,
        false => Tree::default(),
    };
    Ok((file.tail(tail_bytes)?, tree))
}

/// Returns the processes below the task's shim. If the tree ended in the meantime, the shim may already
/// have another task, and the result is empty.
fn tree(file: &TaskFile) -> io::Result<Tree> {
    let Some(shim) = file.records()?.identity.whole() else {
        return Ok(Tree::default());
    };
    let before = Duration::from_micros(shim.cpu_before_micros);
    let mut tree = tree::below(shim.shim_pid as i32);
    tree.cpu = tree.cpu.saturating_sub(before);
    Ok(match file.records()?.tree_end.whole() {
        Some(_) => Tree::default(),
        None => tree,
    })
}

fn resources(task: &Task, tree: &Tree) -> v1::ResourceUse {
    match &task.ended {
        Some(ended) => v1::ResourceUse {
            cpu_time: Some(convert::duration(ended.cpu)),
            memory_bytes: ended.max_memory,
            process_count: 0,
        },
        None => v1::ResourceUse {
            cpu_time: Some(convert::duration(tree.cpu)),
            memory_bytes: tree.memory,
            process_count: tree.processes.len() as u32,
        },
    }
}
