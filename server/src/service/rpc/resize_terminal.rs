//! ResizeTerminal: changes the size of a task's terminal.

use heeler_proto::v1;

use crate::service::{
    Service,
    wire::{check, refusal::Refusal, spec},
};

pub(super) async fn resize_terminal(
    service: &Service,
    request: v1::ResizeTerminalRequest,
) -> Result<v1::ResizeTerminalResponse, Refusal> {
    let id = check::task_id("task_id", &request.task_id)?;
    let size = spec::terminal_size(("columns", request.columns), ("rows", request.rows))?;
    service.check_acts(&id).await?;
    let resized = service.supervisor.resize_terminal(&id, size).await?;
    resized.ok_or_else(|| Refusal::task_not_found(id.as_str()))?;
    Ok(v1::ResizeTerminalResponse {})
}
