//! Wait: a long poll until tasks are finished. It holds nothing: ending it ends nothing.

use std::{future::Future, sync::Arc, time::Duration};

use heeler_proto::v1;

use super::{Service, check, convert, refusal::Refusal};
use crate::task::{Filter, Task, TaskId};

/// What is waited for.
enum Goal {
    /// This many of these.
    Tasks { ids: Vec<TaskId>, count: usize },
    /// Everything in this session, as it is then.
    Session(Filter),
}

/// Where the wait stands.
struct Standing {
    met: Vec<Arc<Task>>,
    pending: Vec<Arc<Task>>,
}

pub(super) async fn wait(
    service: &Service,
    request: v1::WaitRequest,
) -> Result<v1::WaitResponse, Refusal> {
    match check::enumerated("until", request.until)? {
        v1::WaitCondition::Unspecified | v1::WaitCondition::Finished => {}
    }
    let timeout = request
        .timeout
        .map(|span| check::duration("timeout", span))
        .transpose()?;
    let goal = goal(&request)?;
    match goal {
        Goal::Tasks { ids, count } => wait_for_tasks(service, &ids, count, timeout).await,
        Goal::Session(filter) => wait_for_session(service, &filter, timeout).await,
    }
}

fn goal(request: &v1::WaitRequest) -> Result<Goal, Refusal> {
    match (request.task_ids.is_empty(), request.session_id.is_empty()) {
        (true, true) => Err(Refusal::field("task_ids", "is required, or session_id")),
        (false, false) => Err(Refusal::field("session_id", "does not go with task_ids")),
        (true, false) => {
            if request.count.is_some() {
                return Err(Refusal::field("count", "does not go with session_id"));
            }
            let session = check::text("session_id", request.session_id.clone(), check::SHORT_TEXT)?;
            Ok(Goal::Session(Filter {
                session_id: Some(session),
                ..Filter::default()
            }))
        }
        (false, true) => {
            let ids = check::task_ids("task_ids", &request.task_ids)?;
            let count = request.count.map_or(ids.len(), |count| count as usize);
            if count == 0 || count > ids.len() {
                return Err(Refusal::field(
                    "count",
                    "is not between 1 and the number of task_ids",
                ));
            }
            Ok(Goal::Tasks { ids, count })
        }
    }
}

async fn wait_for_tasks(
    service: &Service,
    ids: &[TaskId],
    count: usize,
    timeout: Option<Duration>,
) -> Result<v1::WaitResponse, Refusal> {
    let mut ends = tokio::task::JoinSet::new();
    let mut standing = stand(service, ids).await?;
    for task in &standing.pending {
        if let Some(handle) = service.supervisor.live(&task.id) {
            ends.spawn(async move { handle.ended().await.is_some() });
        }
    }
    let enough = async {
        let mut met = standing.met.len();
        while met < count {
            match ends.join_next().await {
                Some(Ok(true)) => met += 1,
                Some(Ok(false) | Err(_)) | None => break,
            }
        }
    };
    within(service, timeout, enough).await?;
    standing = stand(service, ids).await?;
    let satisfied = standing.met.len() >= count;
    Ok(answer(service, standing, satisfied))
}

async fn stand(service: &Service, ids: &[TaskId]) -> Result<Standing, Refusal> {
    let mut standing = Standing {
        met: Vec::new(),
        pending: Vec::new(),
    };
    for id in ids {
        let task = service.find(id).await?;
        match task.is_live() {
            true => standing.pending.push(task),
            false => standing.met.push(task),
        }
    }
    Ok(standing)
}

async fn wait_for_session(
    service: &Service,
    filter: &Filter,
    timeout: Option<Duration>,
) -> Result<v1::WaitResponse, Refusal> {
    let mut seen: Vec<TaskId> = Vec::new();
    let quiet = async {
        loop {
            let live = service.supervisor.live_matching(filter);
            let Some(first) = live.first() else { return };
            for handle in &live {
                let id = handle.task().id.clone();
                if !seen.contains(&id) {
                    seen.push(id);
                }
            }
            if first.ended().await.is_none() {
                return;
            }
        }
    };
    within(service, timeout, quiet).await?;
    let pending: Vec<Arc<Task>> = service
        .supervisor
        .live_matching(filter)
        .iter()
        .map(|handle| handle.task())
        .collect();
    let mut met = Vec::new();
    for id in &seen {
        // One that was removed meanwhile is finished all the same, but there is nothing to show.
        if let Some(task) = service.supervisor.parts().journal.task(id).await?
            && !task.is_live()
        {
            met.push(task);
        }
    }
    met.sort_by_key(|task| std::cmp::Reverse(task.seq));
    let satisfied = pending.is_empty();
    Ok(answer(service, Standing { met, pending }, satisfied))
}

/// Lets a future run until it is done or the time is over; a server that closes is a refusal.
async fn within(
    service: &Service,
    timeout: Option<Duration>,
    done: impl Future<Output = ()>,
) -> Result<(), Refusal> {
    let over = async {
        match timeout {
            Some(span) => tokio::time::sleep(span.min(LONGEST)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = done => Ok(()),
        () = over => Ok(()),
        () = service.closing.begun() => Err(Refusal::not_serving("the server is shutting down")),
    }
}

/// No caller waits longer than a year, and the timer's arithmetic stays sound.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn answer(service: &Service, standing: Standing, satisfied: bool) -> v1::WaitResponse {
    v1::WaitResponse {
        satisfied,
        met: standing
            .met
            .iter()
            .map(|task| convert::task(task))
            .collect(),
        pending: standing
            .pending
            .iter()
            .map(|task| convert::task(task))
            .collect(),
        revision: service.supervisor.parts().journal.head().0,
    }
}
