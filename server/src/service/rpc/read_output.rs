//! ReadOutput: returns a piece of a task's output and, on request, waits for it.

use std::time::Duration;

use heeler_proto::v1::{self, head_and_tail, read_output_request::Start};
use tokio::time::Instant;

use super::reader::{Reader, Shown, unreadable};
use crate::{
    service::{
        Service,
        transport::Call,
        wire::{
            check,
            output::{self, Selection, View},
            refusal::Refusal,
        },
    },
    supervisor::{Extent, HeadAndTail, OutputStart, Part, PieceLimits},
    task::TaskId,
};

const DEFAULT_BYTES: usize = 256 * 1024;
const LARGEST_READ: usize = 1024 * 1024;
/// The smallest limit for text: any character fits.
const LONGEST_CHARACTER: usize = 4;
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Each part of a head and tail.
const DEFAULT_PART: u64 = 16 * 1024;
const LARGEST_PART: u64 = 512 * 1024;
/// Maximum number of last lines that a filter selects: their places are kept in memory.
const SELECTED_LINES: u64 = 65_536;

/// A request of ReadOutput.
#[derive(Debug)]
pub(super) enum Request {
    Piece {
        reader: Box<Reader>,
        limits: PieceLimits,
        wait: Duration,
    },
    HeadAndTail {
        id: TaskId,
        parts: HeadAndTail,
        view: View,
    },
}

pub(super) async fn read_output(
    service: &Service,
    request: v1::ReadOutputRequest,
    call: &Call,
) -> Result<v1::ReadOutputResponse, Refusal> {
    let has_patterns = request.filter.as_ref().is_some_and(output::has_patterns);
    let request = match has_patterns {
        true => service.check_patterns(call, move || check(request)).await?,
        false => check(request)?,
    };
    match request {
        Request::Piece {
            mut reader,
            limits,
            wait,
        } => read_piece(service, &mut reader, limits, wait, call).await,
        Request::HeadAndTail { id, parts, view } => {
            read_head_and_tail(service, &id, parts, view, call).await
        }
    }
}

async fn read_piece(
    service: &Service,
    reader: &mut Reader,
    limits: PieceLimits,
    wait: Duration,
    call: &Call,
) -> Result<v1::ReadOutputResponse, Refusal> {
    let deadline = Instant::now() + wait;
    // The amount of output that is searched in any case.
    let mut present = None;
    loop {
        let handle = service.supervisor.live(reader.id());
        // The end is checked before the output is read: a finished task writes no more.
        let task = service.find(reader.id()).await?;
        let extent = Extent::of(&task);
        call.reserve(Reader::memory(limits)).await;
        let Some(shown) = reader.next(service, extent, limits, call).await? else {
            continue;
        };
        let is_due = Instant::now() >= deadline;
        let present = *present.get_or_insert(shown.end_offset);
        let is_over = match shown.is_caught_up {
            true => extent.is_complete() || is_due,
            false => is_due && shown.next_offset >= present,
        };
        if !shown.chunks.is_empty() || is_over {
            return Ok(answer(shown, extent));
        }
        if !shown.is_caught_up {
            continue;
        }
        call.hold(0);
        let grown = async {
            // Without a handle the task has just ended: read again.
            if let Some(handle) = handle {
                handle.output_beyond(shown.end_offset).await;
            }
        };
        tokio::select! {
            () = grown => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = service.closing.begun() => {
                return Err(Refusal::shutting_down());
            }
        }
    }
}

async fn read_head_and_tail(
    service: &Service,
    id: &TaskId,
    parts: HeadAndTail,
    view: View,
    call: &Call,
) -> Result<v1::ReadOutputResponse, Refusal> {
    let task = service.find(id).await?;
    let extent = Extent::of(&task);
    call.reserve(2 * LARGEST_PART as usize).await;
    let piece = service.supervisor.read_head_and_tail(id, extent, parts);
    let piece = piece.await.map_err(|error| unreadable(&error))?;
    let end_offset = piece.end;
    let (chunks, next_offset) = view.bytes(piece, extent.is_complete());
    let shown = Shown {
        chunks,
        next_offset,
        end_offset,
        is_caught_up: true,
    };
    Ok(answer(shown, extent))
}

fn answer(shown: Shown, extent: Extent) -> v1::ReadOutputResponse {
    v1::ReadOutputResponse {
        chunks: shown.chunks,
        next_offset: shown.next_offset,
        end_offset: shown.end_offset,
        complete: extent.is_complete(),
    }
}

pub(super) fn check(request: v1::ReadOutputRequest) -> Result<Request, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let view = View::read("view", request.view)?;
    let wait = wait(request.wait)?;
    let selection = output::selection("filter", request.filter.clone(), view)?;
    let start = match request.start {
        None => OutputStart::Offset(0),
        Some(Start::Offset(offset)) => OutputStart::Offset(offset),
        Some(Start::TailBytes(bytes)) => OutputStart::TailBytes(bytes),
        Some(Start::TailLines(lines)) => tail_lines(lines, &selection)?,
        Some(Start::Since(time)) => OutputStart::Since(output::time("since", time)?),
        Some(Start::HeadAndTail(ref parts)) => {
            refuse_with_head_and_tail(&request)?;
            let parts = head_and_tail(parts, view)?;
            return Ok(Request::HeadAndTail { id, parts, view });
        }
    };
    Ok(Request::Piece {
        reader: Box::new(Reader::new(id, start, selection, view)),
        limits: PieceLimits {
            bytes: max_bytes(request.max_bytes, view),
            lines: (request.max_lines > 0).then_some(request.max_lines.into()),
        },
        wait,
    })
}

fn wait(wait: Option<prost_types::Duration>) -> Result<Duration, Refusal> {
    let wait = check::optional_duration("wait", wait)?;
    match wait.unwrap_or_default() {
        wait if wait > LONGEST_WAIT => Err(Refusal::field("wait", "is longer than 5 minutes")),
        wait => Ok(wait),
    }
}

fn max_bytes(bytes: u32, view: View) -> usize {
    let smallest = match view {
        View::Raw => 1,
        View::Text | View::Plain => LONGEST_CHARACTER,
    };
    match bytes as usize {
        0 => DEFAULT_BYTES,
        bytes => bytes.clamp(smallest, LARGEST_READ),
    }
}

/// A start by its distance from the end in lines.
pub(super) fn tail_lines(lines: u64, selection: &Selection) -> Result<OutputStart, Refusal> {
    match selection {
        Selection::Lines(_) if lines > SELECTED_LINES => {
            let problem = format!("is more than {SELECTED_LINES}, with a filter");
            Err(Refusal::field("tail_lines", problem))
        }
        Selection::Lines(_) | Selection::All | Selection::Stream(_) => {
            Ok(OutputStart::TailLines(lines))
        }
    }
}

fn refuse_with_head_and_tail(request: &v1::ReadOutputRequest) -> Result<(), Refusal> {
    let others = [
        ("filter", request.filter.is_some()),
        ("wait", request.wait.is_some()),
        ("max_bytes", request.max_bytes != 0),
        ("max_lines", request.max_lines != 0),
    ];
    match others.into_iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => Err(Refusal::field(
            field,
            "cannot be combined with head_and_tail",
        )),
        None => Ok(()),
    }
}

fn head_and_tail(parts: &v1::HeadAndTail, view: View) -> Result<HeadAndTail, Refusal> {
    use head_and_tail::{Head, Tail};
    let bytes = |field: &str, bytes: u32| match u64::from(bytes) {
        bytes if bytes > LARGEST_PART => {
            let problem = format!("is more than {LARGEST_PART}");
            Err(Refusal::field(format!("head_and_tail.{field}"), problem))
        }
        bytes => Ok(Part::Bytes(bytes)),
    };
    Ok(HeadAndTail {
        head: match parts.head {
            None => Part::Bytes(DEFAULT_PART),
            Some(Head::HeadBytes(head)) => bytes("head_bytes", head)?,
            Some(Head::HeadLines(lines)) => Part::Lines(lines.into()),
        },
        tail: match parts.tail {
            None => Part::Bytes(DEFAULT_PART),
            Some(Tail::TailBytes(tail)) => bytes("tail_bytes", tail)?,
            Some(Tail::TailLines(lines)) => Part::Lines(lines.into()),
        },
        largest: LARGEST_PART,
        boundary: view.boundary(),
    })
}
