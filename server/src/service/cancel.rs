//! Cancel: of one task, a session's, or those that a filter matches.

use std::sync::Arc;

use heeler_proto::v1::{self, cancel_request::Target};
use tonic::Request;

use super::{Service, caller, check, convert, refusal::Refusal};
use crate::{
    supervisor::{CancelMode, CancelOutcome, CancelRequest, Cancelled, Cascade},
    task::{Filter, StopCause, TaskId},
};

pub(super) async fn cancel(
    service: &Service,
    request: Request<v1::CancelRequest>,
) -> Result<v1::CancelResponse, Refusal> {
    let name = check::note("actor", request.get_ref().actor.clone(), check::SHORT_TEXT)?;
    let actor = caller(&request, name);
    let request = request.into_inner();
    let order = CancelRequest {
        cause: StopCause::Cancel,
        mode: mode(&request)?,
        actor,
        reason: check::note("reason", request.reason, check::REASON)?,
        cascade: match request.cascade {
            true => Cascade::Children,
            false => Cascade::Alone,
        },
    };
    let cancelled = match target(request.target)? {
        Aim::One(id) => {
            let found = service.supervisor.cancel(&id, order).await?;
            vec![found.ok_or_else(|| Refusal::task_not_found(id.as_str()))?]
        }
        Aim::Matching(filter) => cancel_matching(service, &filter, order).await?,
    };
    let cancelled = match request.wait {
        true => wait_for_stops(service, cancelled).await?,
        false => cancelled,
    };
    cancelled.iter().for_each(|one| service.tell(&one.task));
    let revision = service.journal.head().0;
    Ok(v1::CancelResponse {
        results: cancelled.iter().map(result).collect(),
        revision,
    })
}

enum Aim {
    One(TaskId),
    Matching(Filter),
}

fn target(target: Option<Target>) -> Result<Aim, Refusal> {
    match target {
        None => Err(Refusal::field(
            "target",
            "is required: task_id, session_id or filter",
        )),
        Some(Target::TaskId(id)) => Ok(Aim::One(check::task_id("task_id", &id)?)),
        Some(Target::SessionId(session)) => Ok(Aim::Matching(Filter {
            session_id: Some(check::session(session)?),
            ..Filter::default()
        })),
        Some(Target::Filter(filter)) => {
            let filter = check::filter("filter", filter)?;
            if filter == Filter::default() {
                return Err(Refusal::field(
                    "filter",
                    "is empty, and would mean every task",
                ));
            }
            Ok(Aim::Matching(filter))
        }
    }
}

fn mode(request: &v1::CancelRequest) -> Result<Option<CancelMode>, Refusal> {
    let grace = request
        .grace
        .map(|span| check::duration("grace", span))
        .transpose()?;
    let signal = check::signal("signal", &request.signal)?;
    match check::enumerated("mode", request.mode)? {
        v1::CancelMode::Unspecified | v1::CancelMode::Graceful => {
            Ok(Some(CancelMode::Graceful { grace, signal }))
        }
        v1::CancelMode::Force if grace.is_some() => {
            Err(Refusal::field("grace", "goes with GRACEFUL only"))
        }
        v1::CancelMode::Force if signal.is_some() => {
            Err(Refusal::field("signal", "goes with GRACEFUL only"))
        }
        v1::CancelMode::Force => Ok(Some(CancelMode::Force)),
    }
}

/// All at once, and in futures of their own: a caller that leaves meanwhile has stopped them all. One
/// that cannot be stopped now does not keep the others from it; if none can, that is the answer.
async fn cancel_matching(
    service: &Service,
    filter: &Filter,
    order: CancelRequest,
) -> Result<Vec<Cancelled>, Refusal> {
    let targets = service
        .supervisor
        .live_matching(filter)
        .into_iter()
        .map(|handle| {
            let (supervisor, order) = (service.supervisor.clone(), order.clone());
            tokio::spawn(async move { supervisor.cancel(&handle.task().id, order).await })
        });
    let mut cancelled = Vec::new();
    let mut refusal = None;
    for target in targets.collect::<Vec<_>>() {
        match target.await {
            Ok(Ok(found)) => cancelled.extend(found),
            Ok(Err(error)) => refusal = Some(error),
            Err(_) => {}
        }
    }
    match (refusal, cancelled.is_empty()) {
        (Some(error), true) => Err(error.into()),
        (Some(_) | None, _) => Ok(cancelled),
    }
}

/// Waits until every task is finished, or its kill is overdue and the survivors are named. A caller
/// that leaves meanwhile leaves the cancels standing.
async fn wait_for_stops(
    service: &Service,
    mut cancelled: Vec<Cancelled>,
) -> Result<Vec<Cancelled>, Refusal> {
    for one in &mut cancelled {
        let id = one.task.id.clone();
        if let Some(handle) = service.supervisor.live(&id) {
            let stopped = tokio::select! {
                // A shutdown that stops all tasks closes after their ends.
                biased;
                stopped = handle.finished_or_kill_overdue() => stopped,
                () = service.closing.begun() => None,
            };
            one.task = stopped.ok_or_else(Refusal::shutting_down)?;
        } else if one.task.is_live() {
            one.task = service.find(&id).await?;
        }
    }
    Ok(cancelled)
}

fn result(cancelled: &Cancelled) -> v1::CancelResult {
    let task = Arc::as_ref(&cancelled.task);
    let outcome = match cancelled.outcome {
        CancelOutcome::Requested => v1::CancelOutcome::Requested,
        CancelOutcome::AlreadyStopping => v1::CancelOutcome::AlreadyStopping,
        CancelOutcome::AlreadyFinished => v1::CancelOutcome::AlreadyFinished,
    };
    v1::CancelResult {
        task: Some(convert::task(task)),
        outcome: outcome.into(),
        proof: task
            .stop
            .as_ref()
            .and_then(|stop| stop.proof.as_ref())
            .map(convert::proof),
    }
}
