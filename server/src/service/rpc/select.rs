//! The tasks that a filter selects for a call that acts on them, and acting on all of them at once.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    service::{Service, wire::refusal::Refusal},
    task::{Filter, Task, TaskId},
};

/// Returns the tasks that the filter names by id and that match the rest of it, in the order of List.
/// Each id must be that of a task. A filter without ids selects live tasks.
pub(super) async fn select(service: &Service, filter: &Filter) -> Result<Vec<Arc<Task>>, Refusal> {
    if filter.ids.is_empty() {
        let live = service.supervisor.live_matching(filter);
        return Ok(live.iter().map(|handle| handle.task()).collect());
    }
    let mut tasks = named(service, filter).await?;
    tasks.sort_by_key(|task| (!task.is_live(), Reverse(task.seq)));
    Ok(tasks)
}

/// Returns the tasks that the filter names by id and that match the rest of it, in the order of its ids. The
/// caller must be allowed to act on each of them.
pub(super) async fn named(service: &Service, filter: &Filter) -> Result<Vec<Arc<Task>>, Refusal> {
    let mut tasks = Vec::with_capacity(filter.ids.len());
    for id in &filter.ids {
        tasks.push(service.find_to_act(id).await?);
    }
    tasks.retain(|task| filter.matches(task));
    Ok(tasks)
}

/// Runs an operation on all tasks at once, each in a future of its own, so that a caller that leaves has
/// still reached them all.
pub(super) async fn on_each<T, F>(
    tasks: &[Arc<Task>],
    operation: impl Fn(TaskId) -> F,
) -> Vec<Result<T, Refusal>>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Refusal>> + Send + 'static,
{
    let start = |task: &Arc<Task>| tokio::spawn(operation(task.id.clone()));
    let running: Vec<_> = tasks.iter().map(start).collect();
    let mut results = Vec::with_capacity(running.len());
    for one in running {
        results.push(one.await.unwrap_or_else(|_| Err(Refusal::interrupted())));
    }
    results
}
