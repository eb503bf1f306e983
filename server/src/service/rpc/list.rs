//! List: returns pages of tasks from the journal.

use heeler_proto::{Encoded, v1};
use prost::Message;

use crate::{
    journal::ListQuery,
    service::{
        Service,
        transport::Call,
        wire::{
            filter,
            page_token::{self, Fingerprint},
            refusal::Refusal,
        },
    },
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
    let query = ListQuery {
        filter: filter::reading(request.filter)?,
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
    };
    Ok(Encoded::from_parts(&tasks, &rest))
}

/// A page token belongs to the tasks that are listed; the page size may change.
pub(super) fn fingerprint(request: &v1::ListRequest) -> Fingerprint {
    let listed = v1::ListRequest {
        filter: request.filter.clone(),
        include_finished: request.include_finished,
        include_finished_foreground: request.include_finished_foreground,
        page_size: 0,
        page_token: String::new(),
    };
    Fingerprint::of(&listed.encode_to_vec())
}
