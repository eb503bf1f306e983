//! WriteInput: writes to the input of a task.

use std::time::Duration;

use heeler_proto::v1;

use crate::{
    service::{
        Service,
        wire::{check, refusal::Refusal},
    },
    supervisor::{InputEnd, InputHold, InputWrite, LONGEST_WRITER},
    task::TaskId,
};

/// The most bytes in one call.
const LARGEST_WRITE: usize = 1 << 20;
const LONGEST_WAIT: Duration = Duration::from_secs(300);

pub(super) async fn write_input(
    service: &Service,
    request: v1::WriteInputRequest,
) -> Result<v1::WriteInputResponse, Refusal> {
    let (id, write, wait) = check(request)?;
    service.check_acts(&id).await?;
    let standing = tokio::select! {
        standing = service.supervisor.write_input(&id, write, wait) => standing?,
        () = service.closing.begun(), if !wait.is_zero() => return Err(Refusal::shutting_down()),
    };
    let standing = standing.ok_or_else(|| Refusal::task_not_found(id.as_str()))?;
    Ok(v1::WriteInputResponse {
        offset: standing.offset,
        closed: standing.is_closed,
        writer_id: standing.writer,
        taken_bytes: standing.taken as u32,
    })
}

pub(super) fn check(
    request: v1::WriteInputRequest,
) -> Result<(TaskId, InputWrite, Duration), Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let wait = check::optional_duration("wait", request.wait)?.unwrap_or_default();
    if wait > LONGEST_WAIT {
        return Err(Refusal::field("wait", "is longer than 5 minutes"));
    }
    if request.data.len() > LARGEST_WRITE {
        let problem = format_args!("is longer than {LARGEST_WRITE} bytes");
        return Err(Refusal::field("data", problem));
    }
    let end_of_data = request
        .offset
        .map(|offset| offset.checked_add(LARGEST_WRITE as u64));
    if end_of_data == Some(None) {
        return Err(Refusal::field("offset", "is too large"));
    }
    let write = InputWrite {
        writer: check::os_text("writer_id", request.writer_id, LONGEST_WRITER)?,
        offset: request.offset,
        data: request.data,
        end: match request.close {
            true => InputEnd::Close,
            false => InputEnd::Open,
        },
        hold: match request.take_over {
            true => InputHold::TakeOver,
            false => InputHold::IfFree,
        },
    };
    Ok((id, write, wait))
}
