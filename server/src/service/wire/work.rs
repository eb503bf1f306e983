//! The messages of workers: progress, results, and what they are told.

use std::collections::BTreeMap;

use heeler_proto::v1;
use uuid::Uuid;

use super::{
    check,
    convert::{duration, timestamp},
    refusal::Refusal,
    task,
};
use crate::task::{
    Block, BlockKind, Moment, Monotonic, NewBlock, Progress, ProgressUpdate, Stop, StopPhase, Task,
    TaskMessage, Timestamp, WorkerResult, WorkerStatus,
};

/// Maximum number of blocks in one update, of counters, and of bytes in a counter's name.
const BLOCKS: usize = 1000;
const COUNTS: usize = 32;
const COUNT_NAME: usize = 64;
/// Maximum length of a result's text, and of its data.
const RESULT: usize = 64 * 1024;
/// Maximum length of a message.
const MESSAGE: usize = 64 * 1024;

/// Reads a change of progress. Texts are cut, whatever their length.
pub(crate) fn update(update: v1::ProgressUpdate) -> Result<ProgressUpdate, Refusal> {
    let v1::ProgressUpdate {
        blocks,
        intent,
        percent,
        counts,
    } = update;
    if blocks.len() > BLOCKS {
        let problem = format_args!("has more than {BLOCKS} blocks");
        return Err(Refusal::field("blocks", problem));
    }
    if percent.is_some_and(|percent| percent > 100) {
        return Err(Refusal::field("percent", "is more than 100"));
    }
    check_counts(&counts)?;
    let blocks: Result<_, _> = blocks.into_iter().enumerate().map(new_block).collect();
    Ok(ProgressUpdate::new(blocks?, intent, percent, counts))
}

fn check_counts(counts: &BTreeMap<String, u64>) -> Result<(), Refusal> {
    if counts.len() > COUNTS {
        let problem = format_args!("has more than {COUNTS} counters");
        return Err(Refusal::field("counts", problem));
    }
    for name in counts.keys() {
        check::text(&check::entry("counts", name), name.clone(), COUNT_NAME)?;
    }
    Ok(())
}

fn new_block((at, block): (usize, v1::Block)) -> Result<NewBlock, Refusal> {
    let kind = match check::enumerated(&format!("blocks[{at}].kind"), block.kind)? {
        v1::BlockKind::Unspecified | v1::BlockKind::Note => BlockKind::Note,
        v1::BlockKind::Text => BlockKind::Text,
        v1::BlockKind::Thought => BlockKind::Thought,
        v1::BlockKind::ToolCall => BlockKind::ToolCall,
        v1::BlockKind::ToolResult => BlockKind::ToolResult,
    };
    let v1::Block {
        text,
        text_bytes,
        name,
        ..
    } = block;
    Ok(NewBlock::new(kind, text, text_bytes, name))
}

pub(crate) fn show_block(block: &Block) -> v1::Block {
    let Block { number, block, at } = block;
    v1::Block {
        number: *number,
        kind: match block.kind {
            BlockKind::Text => v1::BlockKind::Text,
            BlockKind::Thought => v1::BlockKind::Thought,
            BlockKind::ToolCall => v1::BlockKind::ToolCall,
            BlockKind::ToolResult => v1::BlockKind::ToolResult,
            BlockKind::Note => v1::BlockKind::Note,
        }
        .into(),
        text: block.text.clone(),
        text_bytes: block.text_bytes,
        name: block.name.clone(),
        block_time: Some(timestamp(*at)),
    }
}

pub(super) fn show_progress(progress: &Progress) -> v1::Progress {
    v1::Progress {
        intent: progress.intent.clone(),
        percent: progress.percent,
        counts: progress.counts.clone(),
        block_count: progress.blocks,
        update_time: Some(timestamp(progress.at)),
    }
}

/// Reads a result. The time at which it is recorded is set later.
pub(crate) fn result(result: v1::WorkerResult) -> Result<WorkerResult, Refusal> {
    let status = match check::enumerated("status", result.status)? {
        v1::WorkerStatus::Unspecified => return Err(Refusal::field("status", "is required")),
        v1::WorkerStatus::Ok => WorkerStatus::Ok,
        v1::WorkerStatus::Failed => WorkerStatus::Failed,
        v1::WorkerStatus::Cancelled => WorkerStatus::Cancelled,
    };
    if result.data.len() > RESULT {
        let problem = format_args!("is longer than {RESULT} bytes");
        return Err(Refusal::field("data", problem));
    }
    Ok(WorkerResult {
        status,
        text: check::text("text", result.text, RESULT)?,
        data: result.data.into(),
        at: Moment::default(),
    })
}

pub(super) fn show_result(result: &WorkerResult) -> v1::WorkerResult {
    v1::WorkerResult {
        status: show_status(result.status).into(),
        text: result.text.clone(),
        data: result.data.clone().into(),
        result_time: Some(timestamp(result.at.wall)),
    }
}

pub(super) fn show_status(status: WorkerStatus) -> v1::WorkerStatus {
    match status {
        WorkerStatus::Ok => v1::WorkerStatus::Ok,
        WorkerStatus::Failed => v1::WorkerStatus::Failed,
        WorkerStatus::Cancelled => v1::WorkerStatus::Cancelled,
    }
}

/// The id of a worker that comes back; `None` for a new one.
pub(crate) fn worker_id(id: &str) -> Result<Option<Uuid>, Refusal> {
    match id {
        "" => Ok(None),
        id => id.parse().map(Some).map_err(|_| {
            let problem = "is not the id of a worker, such as joined.worker_id";
            Refusal::field("worker_id", problem)
        }),
    }
}

/// The text of a message.
pub(crate) fn message_text(text: String) -> Result<String, Refusal> {
    match text.is_empty() {
        true => Err(Refusal::field("text", "is required")),
        false => check::text("text", text, MESSAGE),
    }
}

pub(crate) fn show_message(message: TaskMessage) -> v1::TaskMessage {
    let TaskMessage {
        number,
        message,
        at,
    } = message;
    v1::TaskMessage {
        number,
        text: message.text,
        sender: Some(task::actor(&message.sender)),
        send_time: Some(timestamp(at)),
        message_id: message.message_id.unwrap_or_default(),
    }
}

/// The request to stop that the worker of a task gets; `None` if the task is not being stopped.
pub(crate) fn cancel(task: &Task) -> Option<v1::WorkCancel> {
    let stop = task.stop.as_ref()?;
    let remaining = match stop.phase() {
        StopPhase::Soft { until } | StopPhase::Signal { until, .. } => {
            until.since(Monotonic::now())
        }
        StopPhase::Kill => std::time::Duration::ZERO,
    };
    Some(v1::WorkCancel {
        mode: cancel_mode(stop).into(),
        cause: task::cause(stop.cause).into(),
        actor: Some(task::actor(&stop.actor)),
        reason: stop.reason.clone().unwrap_or_default(),
        deadline_time: Some(timestamp(Timestamp::now().saturating_add(remaining))),
        remaining: Some(duration(remaining)),
    })
}

/// The urgency of a stop.
pub(crate) fn cancel_mode(stop: &Stop) -> v1::WorkCancelMode {
    match stop.phase() {
        StopPhase::Soft { .. } => v1::WorkCancelMode::Soft,
        StopPhase::Signal { .. } | StopPhase::Kill => v1::WorkCancelMode::Final,
    }
}
