//! Wait: a long poll until tasks are finished. It holds nothing: ending it ends nothing.

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use heeler_proto::v1;

use crate::{
    journal::ReadError,
    service::{
        Service,
        wire::{check, filter, refusal::Refusal, task},
    },
    supervisor::Handle,
    task::{EventKind, Fact, Filter, Revision, Task, TaskId},
};

/// What is waited for.
enum Goal {
    /// This many of these.
    Tasks { ids: Vec<TaskId>, count: usize },
    /// Everything in this session, as it is then.
    Session(Filter),
}

/// What a task is waited for to be.
#[derive(Debug, Clone, Copy)]
enum Until {
    Finished,
    OutOfForeground,
}

/// Events that are read at once.
const BATCH: usize = 256;

/// How long after a task without an end its session is looked at again: a server that goes down
/// refuses the wait meanwhile.
const LET_GO: Duration = Duration::from_millis(10);

pub(super) async fn wait(
    service: &Service,
    request: v1::WaitRequest,
) -> Result<v1::WaitResponse, Refusal> {
    let until = match check::enumerated("until", request.until)? {
        v1::WaitCondition::Unspecified | v1::WaitCondition::Finished => Until::Finished,
        v1::WaitCondition::OutOfForeground => Until::OutOfForeground,
    };
    let timeout = check::optional_duration("timeout", request.timeout)?;
    match goal(request)? {
        Goal::Tasks { ids, count } => wait_for_tasks(service, &ids, count, until, timeout).await,
        Goal::Session(filter) => wait_for_session(service, &filter, until, timeout).await,
    }
}

impl Until {
    fn is_met(self, task: &Task) -> bool {
        match self {
            Self::Finished => !task.is_live(),
            Self::OutOfForeground => task.is_out_of_foreground(),
        }
    }

    /// The task as it was when it came true; `None` if the server lets go of it first.
    async fn met(self, handle: &Handle) -> Option<Arc<Task>> {
        match self {
            Self::Finished => handle.ended().await,
            Self::OutOfForeground => handle.out_of_foreground().await,
        }
    }
}

fn goal(request: v1::WaitRequest) -> Result<Goal, Refusal> {
    let filter = filter::acting(request.filter)?;
    let mut fields = filter.set_fields().into_iter();
    let (Some(first), second) = (fields.next(), fields.next()) else {
        return Err(Refusal::field("filter", "needs task_ids or session_id"));
    };
    if let Some(second) = second {
        let problem = format!("cannot be combined with filter.{first} in a wait");
        return Err(Refusal::field(format!("filter.{second}"), problem));
    }
    match (first, request.count) {
        ("session_id", None) => Ok(Goal::Session(filter)),
        ("session_id", Some(_)) => Err(Refusal::field("count", "needs filter.task_ids")),
        ("task_ids", count) => {
            let ids = filter.ids;
            let count = count.map_or(ids.len(), |count| count as usize);
            match (1..=ids.len()).contains(&count) {
                true => Ok(Goal::Tasks { ids, count }),
                false => Err(Refusal::field(
                    "count",
                    "is not between 1 and the number of filter.task_ids",
                )),
            }
        }
        (other, _) => Err(Refusal::field(
            format!("filter.{other}"),
            "is not allowed in a wait: use task_ids or session_id",
        )),
    }
}

async fn wait_for_tasks(
    service: &Service,
    ids: &[TaskId],
    count: usize,
    until: Until,
    timeout: Option<Duration>,
) -> Result<v1::WaitResponse, Refusal> {
    let mut tasks = BTreeMap::new();
    let mut waits = tokio::task::JoinSet::new();
    for id in ids {
        let task = service.find(id).await?;
        if !until.is_met(&task) {
            let (service, id) = (service.clone(), id.clone());
            waits.spawn(async move { met(&service, &id, until).await });
        }
        tasks.insert(id.clone(), task);
    }
    let mut met = tasks.values().filter(|task| until.is_met(task)).count();
    let enough = async {
        while met < count
            && let Some(waited) = waits.join_next().await
        {
            let Ok(Some(task)) = waited else { continue };
            tasks.insert(task.id.clone(), task);
            met += 1;
        }
    };
    within(service, timeout, enough).await?;
    let (met, pending): (Vec<_>, Vec<_>) = ids
        .iter()
        .filter_map(|id| tasks.remove(id))
        .partition(|task| until.is_met(task));
    let satisfied = met.len() >= count;
    Ok(answer(service, &met, &pending, satisfied))
}

/// A live task, once it is what is waited for; `None` if the server lets go of it first.
async fn met(service: &Service, id: &TaskId, until: Until) -> Option<Arc<Task>> {
    match service.supervisor.live(id) {
        Some(handle) => until.met(&handle).await,
        // It has just ended.
        None => service.find(id).await.ok().filter(|task| !task.is_live()),
    }
}

async fn wait_for_session(
    service: &Service,
    filter: &Filter,
    until: Until,
    timeout: Option<Duration>,
) -> Result<v1::WaitResponse, Refusal> {
    let since = service.supervisor.parts().journal.head();
    let unmet = |handle: &Handle| !until.is_met(&handle.task());
    let quiet = async {
        loop {
            let live = service.supervisor.live_matching(filter);
            let Some(first) = live.into_iter().find(unmet) else {
                return;
            };
            // One that never began is no reason to think that the others are over.
            if until.met(&first).await.is_none() {
                tokio::time::sleep(LET_GO).await;
            }
        }
    };
    let over = within(service, timeout, quiet).await?;
    let live = service.supervisor.live_matching(filter);
    let (mut met, mut pending): (Vec<_>, Vec<_>) = live
        .iter()
        .map(Handle::task)
        .partition(|task| until.is_met(task));
    if over == Over::Done {
        pending.clear();
    }
    let ended = ended_since(service, since, filter).await?;
    met.extend(ended.into_iter().rev());
    Ok(answer(service, &met, &pending, over == Over::Done))
}

/// The tasks that have ended since a revision, in the order of their ends.
async fn ended_since(
    service: &Service,
    since: Revision,
    filter: &Filter,
) -> Result<Vec<Arc<Task>>, Refusal> {
    let journal = &service.supervisor.parts().journal;
    let mut ended = Vec::new();
    let mut cursor = since;
    loop {
        let facts = match journal.facts_after(cursor, BATCH).await {
            // What ended longest ago is told by no event any more; its task is there.
            Err(ReadError::OutOfRange { oldest, .. }) if cursor < oldest => {
                ended.extend(journal.ended_within(cursor, oldest, filter.clone()).await?);
                cursor = Revision(oldest.0.saturating_sub(1));
                continue;
            }
            facts => facts?,
        };
        let Some(last) = facts.last() else {
            return Ok(ended);
        };
        cursor = last.revision();
        let events = facts.iter().filter_map(Fact::event);
        let ends = events.filter(|event| event.kind == EventKind::Ended);
        ended.extend(
            ends.map(|end| Arc::clone(&end.task))
                .filter(|task| filter.matches(task)),
        );
    }
}

/// Why a wait is over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Done,
    TimedOut,
}

/// Lets a future run until it is done or the time is over; a server that closes is a refusal.
async fn within(
    service: &Service,
    timeout: Option<Duration>,
    done: impl Future<Output = ()>,
) -> Result<Over, Refusal> {
    let timed_out = async {
        match timeout {
            Some(span) => tokio::time::sleep(span.min(LONGEST)).await,
            None => std::future::pending().await,
        }
    };
    tokio::pin!(done);
    tokio::select! {
        biased;
        () = service.closing.begun() => {
            // A server that has stopped all its tasks closes after their ends: this wait is over too.
            match service.supervisor.live_matching(&Filter::default()).is_empty() {
                true => {
                    done.await;
                    Ok(Over::Done)
                }
                false => Err(Refusal::shutting_down()),
            }
        }
        () = &mut done => Ok(Over::Done),
        () = timed_out => Ok(Over::TimedOut),
    }
}

/// No caller waits longer than a year, and the timer's arithmetic stays sound.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

fn answer(
    service: &Service,
    met: &[Arc<Task>],
    pending: &[Arc<Task>],
    satisfied: bool,
) -> v1::WaitResponse {
    met.iter().for_each(|task| service.note_delivered(task));
    v1::WaitResponse {
        satisfied,
        met: met.iter().map(|task| task::show(task)).collect(),
        pending: pending.iter().map(|task| task::show(task)).collect(),
        revision: service.revision(),
    }
}
