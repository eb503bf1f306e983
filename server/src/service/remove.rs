//! Remove: forgets finished tasks, then deletes what they wrote.

use heeler_proto::v1::{self, remove_request::Target};

use super::{Service, check, refusal::Refusal};
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
            forget(service, ids).await?
        }
        Some(Target::Finished(filter)) => {
            remove_finished(service, check::filter("finished", filter)?).await?
        }
    };
    let revision = service.supervisor.parts().journal.head().0;
    let removed_task_ids = removed.iter().map(ToString::to_string).collect();
    Ok(v1::RemoveResponse {
        removed_task_ids,
        revision,
    })
}

async fn remove_finished(service: &Service, filter: Filter) -> Result<Vec<TaskId>, Refusal> {
    let journal = &service.supervisor.parts().journal;
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
        let ids: Vec<TaskId> = finished.map(|task| task.id.clone()).collect();
        if !ids.is_empty() {
            removed.extend(forget(service, ids).await?);
        }
        position = page.next;
        if position.is_none() {
            return Ok(removed);
        }
    }
}

async fn forget(service: &Service, ids: Vec<TaskId>) -> Result<Vec<TaskId>, Refusal> {
    let parts = service.supervisor.parts();
    match parts.journal.remove(ids.clone()).await {
        Ok(_) => {}
        // Somebody else forgot one of several a moment ago: only a caller who named it minds.
        Err(error @ JournalError::NotFound { .. }) => return Err(error.into()),
        Err(error) => return Err(error.into()),
    }
    let task_dir = parts.task_dir.clone();
    let gone = ids.clone();
    let deleted = tokio::task::spawn_blocking(move || {
        for id in &gone {
            // The record is gone; a file that stays is only space, and said to be there.
            if let Err(error) = task_dir.remove(id) {
                tracing::warn!(task = %id, %error, "its output could not be deleted");
            }
        }
    });
    let _ = deleted.await;
    Ok(ids)
}
