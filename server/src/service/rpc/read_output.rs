//! ReadOutput: returns a piece of a task's output and, on request, waits for it.

use std::time::Duration;

use heeler_proto::v1::{self, read_output_request::Start};
use tokio::time::Instant;

use crate::{
    service::{
        Service,
        transport::Call,
        wire::{check, convert, refusal::Refusal, text},
    },
    supervisor::{OutputStart, Reading},
    task::TaskId,
};

const DEFAULT_BYTES: usize = 256 * 1024;
const LARGEST_READ: usize = 1024 * 1024;
/// The smallest limit for text: any character fits.
const LONGEST_CHARACTER: usize = 4;
/// One part in this many is expected to be added by the descriptions of chunks.
const OVERHEAD_PART: usize = 8;
const LONGEST_WAIT: Duration = Duration::from_secs(300);

/// The piece of output to read.
#[derive(Debug)]
pub(super) struct Read {
    pub(super) id: TaskId,
    pub(super) start: Start,
    pub(super) max_bytes: usize,
    pub(super) view: v1::OutputView,
}

impl Read {
    /// The offset of the next piece, once one was read.
    pub(super) fn offset(&self) -> u64 {
        match self.start {
            Start::Offset(offset) => offset,
            Start::TailBytes(_) => 0,
        }
    }
}

pub(super) async fn read_output(
    service: &Service,
    request: v1::ReadOutputRequest,
    call: &Call,
) -> Result<v1::ReadOutputResponse, Refusal> {
    let deadline = Instant::now() + wait(&request)?;
    let mut read = check(request)?;
    loop {
        let handle = service.supervisor.live(&read.id);
        // The end is checked before the output is read: a finished task writes no more.
        let task = service.find(&read.id).await?;
        let complete = !task.is_live();
        call.reserve(read.max_bytes + read.max_bytes / OVERHEAD_PART)
            .await;
        let mut answer = piece(service, &mut read, complete).await?;
        let end = answer.end_offset;
        if complete {
            skip_lost(&mut answer, task.output_bytes);
        }
        if !answer.chunks.is_empty() || complete || Instant::now() >= deadline {
            return Ok(answer);
        }
        call.hold(0);
        let grown = async {
            // Without a handle the task has just ended: read again.
            if let Some(handle) = handle {
                handle.output_beyond(end).await;
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

pub(super) fn wait(request: &v1::ReadOutputRequest) -> Result<Duration, Refusal> {
    let wait = check::optional_duration("wait", request.wait)?;
    match wait.unwrap_or_default() {
        wait if wait > LONGEST_WAIT => Err(Refusal::field("wait", "is longer than 5 minutes")),
        wait => Ok(wait),
    }
}

pub(super) fn check(request: v1::ReadOutputRequest) -> Result<Read, Refusal> {
    let view = check::enumerated("view", request.view)?;
    let smallest = match view {
        v1::OutputView::Unspecified | v1::OutputView::Raw => 1,
        v1::OutputView::Text => LONGEST_CHARACTER,
    };
    Ok(Read {
        id: check::task_id("task_id", &request.task_id)?,
        start: request.start.unwrap_or(Start::Offset(0)),
        max_bytes: match request.max_bytes as usize {
            0 => DEFAULT_BYTES,
            bytes => bytes.clamp(smallest, LARGEST_READ),
        },
        view,
    })
}

/// Reads the available output and advances the start of the next read.
pub(super) async fn piece(
    service: &Service,
    read: &mut Read,
    complete: bool,
) -> Result<v1::ReadOutputResponse, Refusal> {
    let start = match read.start {
        Start::Offset(offset) => OutputStart::Offset(offset),
        Start::TailBytes(bytes) => OutputStart::TailBytes(bytes),
    };
    let loaded = service
        .supervisor
        .read_output(&read.id, start, read.max_bytes);
    let (offset, reading) = loaded.await.map_err(|error| unreadable(&error))?;
    let answer = view(read, offset, reading, complete);
    read.start = Start::Offset(answer.next_offset);
    Ok(answer)
}

pub(super) fn unreadable(error: &std::io::Error) -> Refusal {
    Refusal::storage("read the task's output", error)
}

/// Skips output of a finished task that is lost, for example output in memory before a restart of the
/// machine. It still counts, and a reader continues after it.
fn skip_lost(answer: &mut v1::ReadOutputResponse, written: u64) {
    if answer.next_offset >= answer.end_offset {
        answer.next_offset = answer.next_offset.max(written);
    }
    answer.end_offset = answer.end_offset.max(written);
}

fn view(read: &Read, offset: u64, reading: Reading, complete: bool) -> v1::ReadOutputResponse {
    let end_offset = reading.end;
    let (chunks, next_offset) = match read.view {
        v1::OutputView::Unspecified | v1::OutputView::Raw => {
            let last = reading.chunks.last();
            let next = last.map_or(offset, |chunk| chunk.offset + chunk.data.len() as u64);
            (
                reading.chunks.into_iter().map(convert::raw_chunk).collect(),
                next,
            )
        }
        v1::OutputView::Text => {
            let read_all = |next: u64| complete && next >= end_offset;
            text::view(offset, reading.chunks, read_all)
        }
    };
    v1::ReadOutputResponse {
        chunks,
        next_offset,
        end_offset,
        complete,
    }
}
