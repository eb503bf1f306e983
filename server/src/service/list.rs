//! List: pages of tasks, read from the journal.

use heeler_proto::{Encoded, v1};
use prost::Message;

use super::{
    Service, check,
    page_token::{self, Fingerprint},
    refusal::Refusal,
};
use crate::journal::ListQuery;

const DEFAULT_PAGE: usize = 50;
const LARGEST_PAGE: usize = 1000;

pub(super) async fn list(
    service: &Service,
    request: v1::ListRequest,
) -> Result<Encoded<v1::ListResponse>, Refusal> {
    let fingerprint = fingerprint(&request);
    let position = page_token::read(&request.page_token, fingerprint)?;
    let page_size = match usize::try_from(request.page_size) {
        Ok(0) => DEFAULT_PAGE,
        Ok(size) => size.min(LARGEST_PAGE),
        Err(_) => return Err(Refusal::field("page_size", "is negative")),
    };
    let query = ListQuery {
        filter: check::filter("filter", request.filter.unwrap_or_default())?,
        include_finished: request.include_finished,
        page_size,
        position,
    };
    let page = service.journal.list(query).await?;
    page.tasks.iter().for_each(|task| service.tell(task));
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

/// A page token goes with what is listed; how many at a time may change.
fn fingerprint(request: &v1::ListRequest) -> Fingerprint {
    let listed = v1::ListRequest {
        filter: request.filter.clone(),
        include_finished: request.include_finished,
        page_size: 0,
        page_token: String::new(),
    };
    Fingerprint::of(&listed.encode_to_vec())
}
