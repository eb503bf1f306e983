//! Remove: deletes finished tasks and their output.

use heeler_proto::v1;

use super::select::named;
use crate::{
    journal::{JournalError, ListQuery},
    service::{
        Service,
        wire::{filter, refusal::Refusal},
    },
    task::{Filter, TaskId},
};

/// Tasks that are removed in one transaction.
const BATCH: usize = 256;

pub(super) async fn remove(
    service: &Service,
    request: v1::RemoveRequest,
) -> Result<v1::RemoveResponse, Refusal> {
    let filter = service.acted_on(filter::acting(request.filter)?);
    let filter = filter::without_port(filter, "selects live tasks only, which cannot be removed")?;
    let removed = match filter.ids.is_empty() {
        true => remove_finished(service, filter).await?,
        false => remove_named(service, filter).await?,
    };
    Ok(v1::RemoveResponse {
        removed_task_ids: removed.iter().map(TaskId::to_string).collect(),
        revision: service.revision(),
    })
}

/// Removes all or none of the tasks that the filter names and that match the rest of it.
async fn remove_named(service: &Service, filter: Filter) -> Result<Vec<TaskId>, Refusal> {
    let ids = match (filter.set_fields().len(), &filter.scope) {
        // The journal checks each id as it removes it.
        (1, None) => filter.ids,
        (_, Some(_)) | (_, None) => {
            let tasks = named(service, &filter).await?;
            tasks.iter().map(|task| task.id.clone()).collect()
        }
    };
    if ids.is_empty() {
        return Ok(ids);
    }
    match service.supervisor.remove(ids.clone()).await {
        Ok(()) => Ok(ids),
        Err(JournalError::NotFinished { id }) => {
            Err(Refusal::not_finished(&*service.find(&id).await?))
        }
        Err(error) => Err(error.into()),
    }
}

async fn remove_finished(service: &Service, filter: Filter) -> Result<Vec<TaskId>, Refusal> {
    let journal = &service.journal;
    let mut position = None;
    let mut removed = Vec::new();
    loop {
        let query = ListQuery {
            filter: filter.clone(),
            include_finished: true,
            include_finished_foreground: true,
            page_size: BATCH,
            position,
        };
        let page = journal.list(query).await?;
        let finished = page.tasks.iter().filter(|task| !task.is_live());
        let mut ids: Vec<TaskId> = finished.map(|task| task.id.clone()).collect();
        // A task that another call has removed in the meantime is not an error.
        while let Err(error) = service.supervisor.remove(ids.clone()).await {
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
