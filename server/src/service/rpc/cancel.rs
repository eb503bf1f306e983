//! Cancel: asks the selected tasks to stop and, on request, waits for their ends.

use std::sync::Arc;

use heeler_proto::v1::{self, cancel_request::How};
use tonic::Request;

use super::select::{on_each, select};
use crate::{
    service::{
        Service,
        wire::{check, failure, filter, refusal::Refusal, task},
    },
    supervisor::{CancelMode, CancelOutcome, CancelRequest, Cancelled, Cascade, Standing},
    task::{StopCause, Task},
};

pub(super) async fn cancel(
    service: &Service,
    request: Request<v1::CancelRequest>,
) -> Result<v1::CancelResponse, Refusal> {
    let actor = check::actor(&request, |request| &request.actor)?;
    let request = request.into_inner();
    let order = CancelRequest {
        cause: StopCause::Cancel,
        mode: mode(request.how)?,
        actor,
        reason: check::reason(request.reason)?,
        cascade: match request.cascade {
            true => Cascade::Children,
            false => Cascade::Alone,
        },
    };
    let filter = service.acted_on(filter::selecting(request.filter)?);
    let filter = service.with_listeners(filter).await;
    let selected = select(service, &filter).await?;
    let cancelled = cancel_all(service, &selected, order).await?;
    let cancelled = match request.wait {
        true => wait_for_stops(service, cancelled).await?,
        false => cancelled,
    };
    let delivered = cancelled.iter().map(|one| &one.standing.task);
    delivered.for_each(|task| service.note_delivered(task));
    Ok(v1::CancelResponse {
        results: cancelled.iter().map(result).collect(),
        revision: service.revision(),
    })
}

pub(super) fn mode(how: Option<How>) -> Result<Option<CancelMode>, Refusal> {
    match how {
        None => Ok(None),
        Some(How::Force(v1::ForcedStop {})) => Ok(Some(CancelMode::Force)),
        Some(How::Graceful(policy)) => Ok(Some(CancelMode::Graceful {
            grace: check::optional_duration("graceful.grace", policy.grace)?,
            signal: check::signal("graceful.signal", &policy.signal)?,
            soft_grace: check::optional_duration("graceful.soft_grace", policy.soft_grace)?,
        })),
    }
}

/// Cancels every task. A stop that cannot be recorded takes effect, and its result says so.
async fn cancel_all(
    service: &Service,
    tasks: &[Arc<Task>],
    order: CancelRequest,
) -> Result<Vec<Cancelled>, Refusal> {
    let results = on_each(tasks, |id| {
        let (supervisor, order) = (service.supervisor.clone(), order.clone());
        async move {
            let cancelled = supervisor.cancel(&id, order).await?;
            cancelled.ok_or_else(|| Refusal::task_not_found(id.as_str()))
        }
    })
    .await;
    results.into_iter().collect()
}

/// Waits until every task is finished, or its kill is overdue and the survivors are named. If the caller
/// leaves, the cancels stand.
async fn wait_for_stops(
    service: &Service,
    mut cancelled: Vec<Cancelled>,
) -> Result<Vec<Cancelled>, Refusal> {
    for one in &mut cancelled {
        if let Some(handle) = service.supervisor.live(&one.standing.task.id) {
            let stopped = tokio::select! {
                // A shutdown that stops all tasks closes after their ends.
                biased;
                stopped = handle.stopped() => stopped,
                () = service.closing.begun() => None,
            };
            one.standing = stopped.ok_or_else(Refusal::shutting_down)?;
        }
    }
    // A task whose kill was overdue may have finished while the next one was waited for.
    for standing in cancelled.iter_mut().map(|one| &mut one.standing) {
        let is_recorded = standing.unrecorded.is_none();
        let id = &standing.task.id;
        if standing.task.is_live() && (is_recorded || service.supervisor.live(id).is_none()) {
            *standing = Standing::recorded(service.find(id).await?);
        }
    }
    Ok(cancelled)
}

fn result(cancelled: &Cancelled) -> v1::CancelResult {
    let outcome = match cancelled.outcome {
        CancelOutcome::Requested => v1::CancelOutcome::Requested,
        CancelOutcome::AlreadyStopping => v1::CancelOutcome::AlreadyStopping,
        CancelOutcome::AlreadyFinished => v1::CancelOutcome::AlreadyFinished,
    };
    let Standing { task, unrecorded } = &cancelled.standing;
    v1::CancelResult {
        task: Some(task::show(task)),
        outcome: outcome.into(),
        unrecorded: unrecorded.as_deref().map(failure::unrecorded),
    }
}
