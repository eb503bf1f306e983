//! Spawn: starts a task.

use heeler_proto::v1;

use crate::{
    service::{
        Service,
        wire::{refusal::Refusal, spec, task},
    },
    task::Task,
};

pub(super) async fn spawn(
    service: &Service,
    request: v1::SpawnRequest,
) -> Result<v1::SpawnResponse, Refusal> {
    let event = service.supervisor.spawn(spec::request(request)?).await?;
    let task = &event.task;
    Ok(v1::SpawnResponse {
        task: Some(task::show(task)),
        notices: notices(task),
    })
}

/// The differences between a task and its request.
fn notices(task: &Task) -> Vec<v1::SpawnNotice> {
    let ampersand = || v1::SpawnNotice {
        r#type: v1::SpawnNoticeType::TrailingAmpersand.into(),
        message: "the trailing & was removed: the script runs as one background task".to_owned(),
    };
    let removed = task.spec.had_ampersand;
    removed.then(ampersand).into_iter().collect()
}
