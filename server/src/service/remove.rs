//! Remove: forgets finished tasks, then deletes what they wrote.

use heeler_proto::v1::{self, remove_request::Target};

use super::{Service, check, convert, refusal::Refusal};
use crate::{
    journal::{JournalError, ListQuery},
    task::{Filter, TaskId},
};

/// Tasks that are forgotten in one transaction.
const BATCH: usize = 256;

pub(super) async fn remove(
    service: &Service,
    request: v1::RemoveRequest,
) -> Result<v1::RemoveResponse, Refusal> {
    let removed = match request.target {
        None => return Err(Refusal::field("target", "is required: tasks or finished")),
        Some(Target::Tasks(tasks)) => {
            let ids = check::task_ids("tasks.task_ids", &tasks.task_ids)?;
            match forget(service, ids.clone()).await {
                Err(JournalError::NotFinished { id }) => {
                    let task = convert::task(&*service.find(&id).await?);
                    return Err(Refusal::not_finished(&task));
                }
                forgotten => forgotten?,
            }
            ids
        }
        Some(Target::Finished(filter)) => {
            remove_finished(service, check::filter("finished", filter)?).await?
        }
    };
    let revision = service.journal.head().0;
    let removed_task_ids = removed.iter().map(ToString::to_string).collect();
    Ok(v1::RemoveResponse {
        removed_task_ids,
        revision,
    })
}

async fn remove_finished(service: &Service, filter: Filter) -> Result<Vec<TaskId>, Refusal> {
    let journal = &service.journal;
    let mut position = None;
    let mut removed = Vec::new();
    loop {
        let query = ListQuery {
            filter: filter.clone(),
            include_finished: true,
            page_size: BATCH,
            position,
        };
        let page = journal.list(query).await?;
        let finished = page.tasks.iter().filter(|task| !task.is_live());
        let mut ids: Vec<TaskId> = finished.map(|task| task.id.clone()).collect();
        // One that somebody else has forgotten meanwhile is gone as well.
        while let Err(error) = forget(service, ids.clone()).await {
            let JournalError::NotFound { id } = error else {
                return Err(error.into());
            };
            ids.retain(|other| *other != id);
        }
        removed.extend(ids);
        position = page.next;
        if position.is_none() {
            return Ok(removed);
        }
    }
}

async fn forget(service: &Service, ids: Vec<TaskId>) -> Result<(), JournalError> {
    service.supervisor.remove(ids).await
}
