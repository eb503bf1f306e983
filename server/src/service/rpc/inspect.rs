//! Inspect: returns one task with its processes, its resource use and the end of its output.

use heeler_proto::{Encoded, v1};

use crate::{
    service::{
        Service,
        transport::Call,
        wire::{check, convert, refusal::Refusal},
    },
    supervisor::{Observed, Tree},
    task::Task,
};

const DEFAULT_TAIL: u32 = 4096;
const LARGEST_TAIL: u32 = 256 * 1024;
/// The expected size of an answer without its tail.
const WITHOUT_TAIL: usize = 8 << 10;

pub(super) async fn inspect(
    service: &Service,
    request: v1::InspectRequest,
    call: &Call,
) -> Result<Encoded<v1::InspectResponse>, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let tail_bytes = request.output_tail_bytes.unwrap_or(DEFAULT_TAIL);
    if tail_bytes > LARGEST_TAIL {
        let problem = format!("is more than {LARGEST_TAIL}");
        return Err(Refusal::field("output_tail_bytes", problem));
    }
    let task = service.find(&id).await?;
    call.reserve(tail_bytes as usize + WITHOUT_TAIL).await;
    let observed = service.supervisor.observe(&task, tail_bytes as usize).await;
    let Observed { mut tail, tree } =
        observed.map_err(|error| Refusal::storage("read the task's file", &error))?;
    // Output that is lost, as after a restart of the machine, still counts.
    tail.end = tail.end.max(task.output_bytes);
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
