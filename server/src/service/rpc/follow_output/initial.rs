//! The tasks that are there when a stream begins.

use std::{
    collections::{HashSet, VecDeque},
    sync::Arc,
};

use heeler_proto::v1::ErrorReason;

use super::Request;
use crate::{
    journal::ListQuery,
    service::{Service, wire::refusal::Refusal},
    supervisor::OutputStart,
    task::{Filter, Revision, Task, TaskId},
};

/// Maximum number of finished tasks.
const FINISHED: usize = 1000;

/// A task of the beginning.
#[derive(Debug)]
pub(super) enum Beginning {
    Task { task: Arc<Task>, start: OutputStart },
    Gone(TaskId),
}

/// Returns the tasks, in the order of their creation, and the revision after which events follow.
pub(super) async fn tasks(
    service: &Service,
    request: &Request,
) -> Result<(VecDeque<Beginning>, Revision), Refusal> {
    let (mut found, revision) = match request.after {
        Some(after) => (Vec::new(), after),
        None => service.journal.snapshot(&request.filter),
    };
    let mut known: HashSet<TaskId> = found.iter().map(|task| task.id.clone()).collect();
    if request.include_finished {
        let finished = finished(service, &request.filter).await?;
        found.extend(
            finished
                .into_iter()
                .filter(|task| known.insert(task.id.clone())),
        );
    }
    let cursors = request.cursors.iter();
    let with_cursor: HashSet<&TaskId> = cursors.clone().map(|(id, _)| id).collect();
    found.retain(|task| !with_cursor.contains(&task.id));
    let start = request.options.start;
    let mut beginning: Vec<_> = found
        .into_iter()
        .map(|task| Beginning::Task { task, start })
        .collect();
    let mut named = HashSet::new();
    for (id, offset) in cursors {
        if named.insert(id) {
            let start = offset.map_or(start, OutputStart::Offset);
            beginning.push(at_cursor(service, id, start).await?);
        }
    }
    beginning.sort_by_key(|beginning| match beginning {
        Beginning::Task { task, .. } => Some(task.seq),
        Beginning::Gone(_) => None,
    });
    Ok((beginning.into(), revision))
}

async fn at_cursor(
    service: &Service,
    id: &TaskId,
    start: OutputStart,
) -> Result<Beginning, Refusal> {
    match service.find(id).await {
        Ok(task) => Ok(Beginning::Task { task, start }),
        Err(refusal) if refusal.reason() == ErrorReason::TaskNotFound => {
            Ok(Beginning::Gone(id.clone()))
        }
        Err(refusal) => Err(refusal),
    }
}

/// The finished tasks that match, newest first.
async fn finished(service: &Service, filter: &Filter) -> Result<Vec<Arc<Task>>, Refusal> {
    let (mut finished, mut position) = (Vec::new(), None);
    loop {
        let page = service.journal.list(ListQuery {
            filter: filter.clone(),
            include_finished: true,
            include_finished_foreground: true,
            page_size: FINISHED,
            position,
        });
        let page = page.await?;
        finished.extend(page.tasks.into_iter().filter(|task| !task.is_live()));
        position = page.next;
        if position.is_none() || finished.len() >= FINISHED {
            finished.truncate(FINISHED);
            return Ok(finished);
        }
    }
}
