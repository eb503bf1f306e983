//! Wait: a long poll until tasks are finished, out of the foreground, ready, or have written a line that
//! matches. Its end never ends a task.

pub(super) mod matched;

use std::{collections::BTreeMap, future::Future, sync::Arc, time::Duration};

use heeler_proto::v1;

use super::list::TASK_BYTES;
use crate::{
    journal::ReadError,
    service::{
        Service,
        transport::Call,
        wire::{check, filter, refusal::Refusal, task},
    },
    supervisor::Handle,
    task::{EventKind, Fact, Filter, Revision, Task, TaskId},
};

/// The tasks to wait for.
pub(super) enum Goal {
    /// This many of these tasks.
    Tasks { ids: Vec<TaskId>, count: usize },
    /// Every task of a session, including those that start during the wait.
    Session(Box<Filter>),
}

/// The condition to wait for.
#[derive(Debug, Clone, Copy)]
enum Until {
    Finished,
    OutOfForeground,
    Ready,
}

/// Events that are read at a time.
const BATCH: usize = 256;

/// The delay after a task disappears without an end, before its session is checked again. If the server
/// is shutting down, the wait is refused in that time.
const RECHECK: Duration = Duration::from_millis(10);

pub(super) async fn wait(
    service: &Service,
    request: v1::WaitRequest,
    call: &Call,
) -> Result<v1::WaitResponse, Refusal> {
    let timeout = check::optional_duration("timeout", request.timeout)?;
    let search = request.r#match.clone();
    let until = match check::enumerated("until", request.until)? {
        v1::WaitCondition::Unspecified | v1::WaitCondition::Finished => Some(Until::Finished),
        v1::WaitCondition::OutOfForeground => Some(Until::OutOfForeground),
        v1::WaitCondition::Ready => Some(Until::Ready),
        v1::WaitCondition::Matched => None,
    };
    let waited = match (goal(request)?, until) {
        (_, Some(_)) if search.is_some() => {
            Err(Refusal::field("match", "needs the condition MATCHED"))
        }
        (Goal::Tasks { ids, count }, Some(until)) => {
            wait_for_tasks(service, &ids, count, until, timeout).await
        }
        (Goal::Session(filter), Some(until)) => {
            // Without the task that the caller is inside of: it would wait for itself.
            let filter = service.acted_on(*filter);
            wait_for_session(service, &filter, until, timeout).await
        }
        (Goal::Tasks { ids, count }, None) => {
            let check = move || matched::check(search);
            let filter = service.check_patterns(call, check).await?;
            matched::wait_for_lines(service, &ids, count, &filter, timeout, call).await
        }
        (Goal::Session(_), None) => Err(Refusal::field(
            "filter.session_id",
            "is not allowed with MATCHED: use filter.task_ids",
        )),
    }?;
    let tasks = waited.met.len() + waited.pending.len();
    call.reserve(tasks * TASK_BYTES).await;
    Ok(waited.answer(service))
}

/// The tasks of an answer.
#[derive(Default)]
struct Tasks {
    met: Vec<Arc<Task>>,
    pending: Vec<Arc<Task>>,
    satisfied: bool,
    /// The lines of the tasks in `met`, if lines were waited for.
    lines: Vec<v1::TaskMatch>,
}

impl Until {
    fn is_met(self, task: &Task) -> bool {
        match self {
            Self::Finished => !task.is_live(),
            Self::OutOfForeground => task.is_out_of_foreground(),
            Self::Ready => task.is_readiness_decided(),
        }
    }

    /// Returns the task that meets the condition; `None` if the server stops supervising it first.
    async fn met(self, handle: &Handle) -> Option<Arc<Task>> {
        match self {
            Self::Finished => handle.finished().await,
            Self::OutOfForeground => handle.out_of_foreground().await,
            Self::Ready => handle.readiness_decided().await,
        }
    }
}

pub(super) fn goal(request: v1::WaitRequest) -> Result<Goal, Refusal> {
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
        ("session_id", None) => Ok(Goal::Session(Box::new(filter))),
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
) -> Result<Tasks, Refusal> {
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
    Ok(Tasks {
        satisfied: met.len() >= count,
        met,
        pending,
        lines: Vec::new(),
    })
}

/// Waits until a live task meets the condition; `None` if the server stops supervising it first.
async fn met(service: &Service, id: &TaskId, until: Until) -> Option<Arc<Task>> {
    match service.supervisor.live(id) {
        Some(handle) => until.met(&handle).await,
        // The task has just ended.
        None => service.find(id).await.ok().filter(|task| !task.is_live()),
    }
}

async fn wait_for_session(
    service: &Service,
    filter: &Filter,
    until: Until,
    timeout: Option<Duration>,
) -> Result<Tasks, Refusal> {
    let since = service.journal.head();
    let unmet = |handle: &Handle| !until.is_met(&handle.task());
    let quiet = async {
        loop {
            let live = service.supervisor.live_matching(filter);
            let Some(first) = live.into_iter().find(unmet) else {
                return;
            };
            // A task that was never recorded says nothing about the others.
            if until.met(&first).await.is_none() {
                tokio::time::sleep(RECHECK).await;
            }
        }
    };
    let waited = within(service, timeout, quiet).await?;
    let live = service.supervisor.live_matching(filter);
    let (mut met, mut pending): (Vec<_>, Vec<_>) = live
        .iter()
        .map(Handle::task)
        .partition(|task| until.is_met(task));
    if waited == Waited::Met {
        pending.clear();
    }
    let ended = ended_since(service, since, filter).await?;
    met.extend(ended.into_iter().rev());
    Ok(Tasks {
        satisfied: waited == Waited::Met,
        met,
        pending,
        lines: Vec::new(),
    })
}

/// Returns the tasks that ended after a revision, in the order of their ends.
async fn ended_since(
    service: &Service,
    since: Revision,
    filter: &Filter,
) -> Result<Vec<Arc<Task>>, Refusal> {
    let journal = &service.journal;
    let mut ended = Vec::new();
    let mut cursor = since;
    loop {
        let facts = match journal.facts_after(cursor, BATCH).await {
            // The oldest events are pruned; the tasks they ended are still there.
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

/// The result of a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    Met,
    TimedOut,
}

/// Runs a future until it is done or the time is over. A server that shuts down is a refusal.
async fn within(
    service: &Service,
    timeout: Option<Duration>,
    done: impl Future<Output = ()>,
) -> Result<Waited, Refusal> {
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
            // A server that stopped all its tasks shuts down after their ends: the condition is met.
            match service.supervisor.live_matching(&Filter::default()).is_empty() {
                true => {
                    done.await;
                    Ok(Waited::Met)
                }
                false => Err(Refusal::shutting_down()),
            }
        }
        () = &mut done => Ok(Waited::Met),
        () = timed_out => Ok(Waited::TimedOut),
    }
}

/// A longer timeout is shortened to a year, so that the timer's arithmetic cannot overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

impl Tasks {
    fn answer(&self, service: &Service) -> v1::WaitResponse {
        self.met
            .iter()
            .for_each(|task| service.note_delivered(task));
        let show = |tasks: &[Arc<Task>]| tasks.iter().map(|task| task::show(task)).collect();
        v1::WaitResponse {
            satisfied: self.satisfied,
            met: show(&self.met),
            pending: show(&self.pending),
            revision: service.revision(),
            matches: self.lines.clone(),
        }
    }
}
