//! List: returns pages of tasks from the journal.

use std::sync::Arc;

use heeler_proto::{Encoded, v1};
use prost::Message;

use crate::{
    journal::ListQuery,
    service::{
        Service,
        transport::Call,
        wire::{
            convert, filter,
            page_token::{self, Fingerprint},
            refusal::Refusal,
        },
    },
    task::{Task, TaskId},
};

const DEFAULT_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1000;
/// The expected size of a task in an answer.
pub(super) const TASK_BYTES: usize = 1024;

pub(super) async fn list(
    service: &Service,
    request: v1::ListRequest,
    call: &Call,
) -> Result<Encoded<v1::ListResponse>, Refusal> {
    let fingerprint = fingerprint(&request);
    let position = page_token::read(&request.page_token, fingerprint)?;
    let page_size = match usize::try_from(request.page_size) {
        Ok(0) => DEFAULT_PAGE,
        Ok(size) => size.min(LARGEST_PAGE),
        Err(_) => return Err(Refusal::field("page_size", "is negative")),
    };
    let filter = service
        .with_listeners(service.seen(filter::reading(request.filter)?))
        .await;
    let query = ListQuery {
        filter,
        include_finished: request.include_finished,
        include_finished_foreground: request.include_finished_foreground,
        page_size,
        position,
    };
    call.reserve(page_size * TASK_BYTES).await;
    let page = service.journal.list(query).await?;
    page.tasks
        .iter()
        .for_each(|task| service.note_delivered(task));
    let next = page
        .next
        .map(|position| page_token::write(position, fingerprint));
    let encoded = page.tasks.iter().map(|task| service.encodings.task(task));
    let tasks: Vec<_> = encoded.collect();
    let rest = v1::ListResponse {
        tasks: Vec::new(),
        next_page_token: next.unwrap_or_default(),
        revision: page.revision.0,
        server: Some(service.info()),
        ports: match request.include_ports {
            true => ports(service, &page.tasks).await,
            false => Vec::new(),
        },
    };
    Ok(Encoded::from_parts(&tasks, &rest))
}

/// The ports of those tasks that listen.
async fn ports(service: &Service, tasks: &[Arc<Task>]) -> Vec<v1::TaskPorts> {
    let live = tasks.iter().filter(|task| task.is_live());
    let ids: Vec<TaskId> = live.map(|task| task.id.clone()).collect();
    let ports = service.supervisor.ports(&ids).await;
    let shown = ids.iter().zip(&ports).map(|(id, ports)| v1::TaskPorts {
        task_id: id.to_string(),
        ports: ports.iter().map(convert::port).collect(),
    });
    shown.filter(|shown| !shown.ports.is_empty()).collect()
}

/// A page token belongs to the tasks that are listed; the page size may change.
pub(super) fn fingerprint(request: &v1::ListRequest) -> Fingerprint {
    let listed = v1::ListRequest {
        filter: request.filter.clone(),
        include_finished: request.include_finished,
        include_finished_foreground: request.include_finished_foreground,
        include_ports: false,
        page_size: 0,
        page_token: String::new(),
    };
    Fingerprint::of(&listed.encode_to_vec())
}
