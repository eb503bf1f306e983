//! Inspect: returns one task with its processes, its resource use and the end of its output.

use std::sync::Arc;

use heeler_proto::{Encoded, v1};

use crate::{
    service::{
        Service,
        transport::Call,
        wire::{check, convert, encodings, refusal::Refusal, work},
    },
    supervisor::{ExcerptKind, Observed, Presence, Screen, Tree},
    task::{Gap, GapCause, LATEST_BLOCKS, Task},
};

const DEFAULT_TAIL: u32 = 4096;
const LARGEST_TAIL: u32 = 256 * 1024;
const DEFAULT_BLOCKS: u32 = 10;
/// The expected size of a block.
const BLOCK_BYTES: usize = 4 << 10;
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
    let block_count = request.block_count.unwrap_or(DEFAULT_BLOCKS) as usize;
    if block_count > LATEST_BLOCKS {
        let problem = format!("is more than {LATEST_BLOCKS}");
        return Err(Refusal::field("block_count", problem));
    }
    let task = service.find(&id).await?;
    let handle = service.supervisor.live(&id);
    let block_count = match task.progress {
        Some(_) => block_count,
        None => 0,
    };
    let screen = match request.include_screen {
        true => screen(service, &task, call).await?,
        false => None,
    };
    call.reserve(tail_bytes as usize + block_count * BLOCK_BYTES + WITHOUT_TAIL)
        .await;
    let observed = service.supervisor.observe(&task, tail_bytes as usize).await;
    let Observed {
        mut tail,
        tree,
        stored_bytes,
        mut gaps,
        ports,
    } = observed.map_err(|error| Refusal::storage("read the task's file", &error))?;
    // Output that is lost, as after a restart of the machine, still counts.
    if !task.is_live() && tail.end < task.output_bytes {
        gaps.push(Gap {
            offset: tail.end,
            length: task.output_bytes - tail.end,
            cause: GapCause::Lost,
            lines: None,
        });
    }
    tail.end = tail.end.max(task.output_bytes);
    let blocks = match block_count {
        0 => Vec::new(),
        count => service.journal.blocks(task.seq, count).await?,
    };
    service.note_delivered(&task);
    let rest = v1::InspectResponse {
        task: None,
        resources: Some(resources(&task, &tree)),
        processes: tree.processes.iter().map(convert::process).collect(),
        output_tail: Some(convert::tail(&tail)),
        revision: task.revision.0,
        server: Some(service.info()),
        output: Some(v1::OutputInfo {
            end_offset: tail.end,
            stored_bytes,
            gaps: gaps.into_iter().map(convert::gap).collect(),
        }),
        summary: String::new(),
        ports: ports.iter().map(convert::port).collect(),
        blocks: blocks.iter().map(work::show_block).collect(),
        worker: handle.map(|handle| connection(&handle.presence())),
        screen,
    };
    let mut parts = vec![service.encodings.task(&task)];
    if !task.is_live() {
        let wanted = vec![(task, ExcerptKind::Summary)];
        let summary = service.supervisor.excerpts(wanted, encodings::excerpt);
        parts.extend(summary.await.into_iter().flatten());
    }
    Ok(Encoded::from_parts(&parts, &rest))
}

fn connection(presence: &Presence) -> v1::WorkerConnection {
    v1::WorkerConnection {
        connected: presence.is_connected,
        heard_time: presence.heard.map(convert::timestamp),
    }
}

/// The screen of a task with a terminal.
async fn screen(
    service: &Service,
    task: &Arc<Task>,
    call: &Call,
) -> Result<Option<v1::Screen>, Refusal> {
    let Some(size) = service.supervisor.screen_size(task).await else {
        return Ok(None);
    };
    call.reserve(Screen::memory(size)).await;
    let screen = service
        .supervisor
        .screen(call.search_key(), task, size)
        .await;
    let screen = screen.map_err(|error| Refusal::storage("draw the screen", &error))?;
    Ok(Some(v1::Screen {
        lines: screen.lines,
        columns: screen.size.columns.into(),
        rows: screen.size.rows.into(),
        cursor_column: screen.cursor_column as u32,
        cursor_row: screen.cursor_row as u32,
        cursor_visible: screen.is_cursor_visible,
    }))
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
