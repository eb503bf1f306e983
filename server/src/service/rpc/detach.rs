//! Detach: moves the selected tasks from the foreground to the background.

use heeler_proto::v1;
use tonic::Request;

use super::select::{on_each, select};
use crate::{
    service::{
        Service,
        wire::{check, filter, refusal::Refusal, task},
    },
    supervisor::{DetachOutcome, DetachRequest, Detached},
    task::Placement,
};

pub(super) async fn detach(
    service: &Service,
    request: Request<v1::DetachRequest>,
) -> Result<v1::DetachResponse, Refusal> {
    let actor = check::actor(&request, |request| &request.actor)?;
    let request = request.into_inner();
    let order = DetachRequest {
        actor,
        reason: check::reason(request.reason)?,
        timeout: check::timeout("timeout", request.timeout)?,
    };
    let filter = service.acted_on(filter::selecting(request.filter)?);
    let filter = service.with_listeners(filter).await;
    let mut selected = select(service, &filter).await?;
    if filter.ids.is_empty() {
        selected.retain(|task| task.placement() == Placement::Foreground);
    }
    let results = on_each(&selected, |id| {
        let (supervisor, order) = (service.supervisor.clone(), order.clone());
        async move {
            let detached = supervisor.detach(&id, order).await?;
            detached.ok_or_else(|| Refusal::task_not_found(id.as_str()))
        }
    })
    .await;
    let detached: Vec<Detached> = results.into_iter().collect::<Result<_, _>>()?;
    let delivered = detached.iter().map(|one| &one.standing.task);
    delivered.for_each(|task| service.note_delivered(task));
    Ok(v1::DetachResponse {
        results: detached.iter().map(result).collect(),
        revision: service.revision(),
    })
}

fn result(detached: &Detached) -> v1::DetachResult {
    let outcome = match detached.outcome {
        DetachOutcome::Detached => v1::DetachOutcome::Detached,
        DetachOutcome::AlreadyBackground => v1::DetachOutcome::AlreadyBackground,
        DetachOutcome::AlreadyFinished => v1::DetachOutcome::AlreadyFinished,
    };
    v1::DetachResult {
        task: Some(task::show(&detached.standing.task)),
        outcome: outcome.into(),
    }
}
