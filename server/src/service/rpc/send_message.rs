//! SendMessage: puts a message into the mailbox of a task.

use heeler_proto::v1;
use tonic::Request;

use crate::{
    service::{
        Service,
        wire::{check, refusal::Refusal, work},
    },
    task::MessageDraft,
};

/// Maximum length of a message id.
const MESSAGE_ID: usize = 128;

pub(super) async fn send_message(
    service: &Service,
    request: Request<v1::SendMessageRequest>,
) -> Result<v1::SendMessageResponse, Refusal> {
    let sender = check::actor(&request, |request| &request.actor)?;
    let request = request.into_inner();
    let id = check::task_id("task_id", &request.task_id)?;
    let message = MessageDraft {
        text: work::message_text(request.text)?,
        sender,
        message_id: check::optional_text("message_id", request.message_id, MESSAGE_ID)?,
    };
    service.check_acts(&id).await?;
    let number = service.supervisor.send_message(&id, message).await?;
    let number = number.ok_or_else(|| Refusal::task_not_found(id.as_str()))?;
    Ok(v1::SendMessageResponse { number })
}
