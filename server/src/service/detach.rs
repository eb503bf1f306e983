//! Detach: of one task, or of all that a session holds in the foreground.

use heeler_proto::v1::{self, detach_request::Target};
use tonic::Request;

use super::{Service, caller, check, convert, refusal::Refusal, rules};
use crate::{
    supervisor::{DetachOutcome, DetachRequest, Detached},
    task::{Filter, Placement},
};

pub(super) async fn detach(
    service: &Service,
    request: Request<v1::DetachRequest>,
) -> Result<v1::DetachResponse, Refusal> {
    let name = check::note("actor", request.get_ref().actor.clone(), check::SHORT_TEXT)?;
    let actor = caller(&request, name);
    let request = request.into_inner();
    let order = DetachRequest {
        actor,
        reason: check::note("reason", request.reason, check::REASON)?,
        timeout: rules::span("timeout", request.timeout)?,
    };
    let detached = match request.target {
        None => {
            return Err(Refusal::field(
                "target",
                "is required: task_id or session_id",
            ));
        }
        Some(Target::TaskId(id)) => {
            let id = check::task_id("task_id", &id)?;
            let found = service.supervisor.detach(&id, order).await?;
            vec![found.ok_or_else(|| Refusal::task_not_found(id.as_str()))?]
        }
        Some(Target::SessionId(session)) => {
            let session = check::session(session)?;
            detach_session(service, session, order).await?
        }
    };
    detached.iter().for_each(|one| service.tell(&one.task));
    Ok(v1::DetachResponse {
        results: detached.iter().map(result).collect(),
        revision: service.journal.head().0,
    })
}

/// Each in a future of its own: a caller that leaves meanwhile has detached them all.
async fn detach_session(
    service: &Service,
    session: String,
    order: DetachRequest,
) -> Result<Vec<Detached>, Refusal> {
    let filter = Filter {
        session_id: Some(session),
        ..Filter::default()
    };
    let mut live = service.supervisor.live_matching(&filter);
    live.retain(|handle| handle.task().placement() == Placement::Foreground);
    let targets = live.into_iter().map(|handle| {
        let (supervisor, order) = (service.supervisor.clone(), order.clone());
        tokio::spawn(async move { supervisor.detach(&handle.task().id, order).await })
    });
    let mut detached = Vec::new();
    for target in targets.collect::<Vec<_>>() {
        match target.await {
            Ok(found) => detached.extend(found?),
            Err(_) => return Err(Refusal::shutting_down()),
        }
    }
    Ok(detached)
}

fn result(detached: &Detached) -> v1::DetachResult {
    let outcome = match detached.outcome {
        DetachOutcome::Detached => v1::DetachOutcome::Detached,
        DetachOutcome::AlreadyBackground => v1::DetachOutcome::AlreadyBackground,
        DetachOutcome::AlreadyFinished => v1::DetachOutcome::AlreadyFinished,
    };
    v1::DetachResult {
        task: Some(convert::task(&detached.task)),
        outcome: outcome.into(),
    }
}
