//! Inspect: one task whole, with what only the operating system knows of it.

use heeler_proto::v1;

use super::{Service, check, convert, refusal::Refusal};
use crate::{
    process::tree::{self, Tree},
    task::{Tail, Task, TaskId},
};

const DEFAULT_TAIL: u32 = 4096;
const LARGEST_TAIL: u32 = 256 * 1024;

pub(super) async fn inspect(
    service: &Service,
    request: v1::InspectRequest,
) -> Result<v1::InspectResponse, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let tail_bytes = request.output_tail_bytes.unwrap_or(DEFAULT_TAIL);
    if tail_bytes > LARGEST_TAIL {
        let problem = format!("is more than {LARGEST_TAIL}");
        return Err(Refusal::field("output_tail_bytes", problem));
    }
    let task = service.find(&id).await?;
    let (tail, tree) = observe(service, &id, &task, tail_bytes as usize).await?;
    Ok(v1::InspectResponse {
        task: Some(convert::task(&task)),
        resources: Some(resources(&task, &tree)),
        processes: tree.processes.iter().map(convert::process).collect(),
        output_tail: Some(convert::tail(&tail)),
        revision: task.revision.0,
        server: Some(service.info()),
    })
}

async fn observe(
    service: &Service,
    id: &TaskId,
    task: &Task,
    tail_bytes: usize,
) -> Result<(Tail, Tree), Refusal> {
    let task_dir = service.supervisor.parts().task_dir.clone();
    let (id, live) = (id.clone(), task.is_live());
    let observed = tokio::task::spawn_blocking(move || {
        let Some(file) = task_dir.open(&id)? else {
            return Ok(Default::default());
        };
        let shim = file.records()?.identity.filter(|_| live);
        let tree = shim.map_or_else(Tree::default, |shim| tree::below(shim.shim_pid as i32));
        Ok::<_, std::io::Error>((file.tail(tail_bytes)?, tree))
    });
    match observed.await {
        Ok(Ok(observed)) => Ok(observed),
        Ok(Err(error)) => Err(Refusal::storage("read the task's file", &error)),
        Err(error) => Err(Refusal::storage("look at the task's processes", &error)),
    }
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
