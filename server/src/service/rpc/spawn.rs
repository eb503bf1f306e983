//! Spawn: starts a task, or finds the equal one that a request with ENSURE takes for its own.

use heeler_proto::v1;

use crate::{
    service::{
        Service,
        transport::Call,
        wire::{refusal::Refusal, spec, task},
    },
    supervisor::Notice,
    task::TaskId,
};

pub(super) async fn spawn(
    service: &Service,
    request: v1::SpawnRequest,
    call: &Call,
) -> Result<v1::SpawnResponse, Refusal> {
    let output = request.spec.as_ref().and_then(|spec| spec.output.as_ref());
    let request = match output.is_some_and(|output| !output.patterns.is_empty()) {
        true => {
            let check = move || spec::request(request);
            service.check_patterns(call, check).await?
        }
        false => spec::request(request)?,
    };
    let spawned = service
        .supervisor
        .spawn(request, service.requester())
        .await?;
    let task = &spawned.task;
    let notices = spawned.notices.iter().map(|notice| show(*notice, &task.id));
    Ok(v1::SpawnResponse {
        notices: notices.collect(),
        task: Some(task::show(task)),
    })
}

fn show(notice: Notice, id: &TaskId) -> v1::SpawnNotice {
    let (kind, message) = match notice {
        Notice::TrailingAmpersand => (
            v1::SpawnNoticeType::TrailingAmpersand,
            "the trailing & was removed: the script runs as one background task".to_owned(),
        ),
        Notice::AlreadyRunning => (
            v1::SpawnNoticeType::AlreadyRunning,
            format!("{id} holds the exclusive key and is equal: nothing was started"),
        ),
    };
    v1::SpawnNotice {
        r#type: kind.into(),
        message,
    }
}
