//! The tasks that a filter selects for a call that acts on them.

use std::{cmp::Reverse, sync::Arc};

use crate::{
    service::{Service, wire::refusal::Refusal},
    task::{Filter, Task},
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

/// Returns the tasks that the filter names by id and that match the rest of it, in the order of its ids.
pub(super) async fn named(service: &Service, filter: &Filter) -> Result<Vec<Arc<Task>>, Refusal> {
    let mut tasks = Vec::with_capacity(filter.ids.len());
    for id in &filter.ids {
        tasks.push(service.find(id).await?);
    }
    tasks.retain(|task| filter.matches(task));
    Ok(tasks)
}
