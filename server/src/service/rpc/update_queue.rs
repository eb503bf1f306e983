//! UpdateQueue: changes the settings of a queue.

use std::ops::RangeInclusive;

use heeler_proto::v1;

use super::list_queues::show;
use crate::{
    service::{
        Service,
        wire::{check, refusal::Refusal},
    },
    supervisor::QueueChange,
};

/// At most as many as may wait in all queues.
const SLOTS: RangeInclusive<u32> = 1..=10_000;

pub(super) async fn update_queue(
    service: &Service,
    request: v1::UpdateQueueRequest,
) -> Result<v1::UpdateQueueResponse, Refusal> {
    let name = check::optional_text("name", request.name, check::SHORT_TEXT)?;
    let name = name.ok_or_else(|| Refusal::field("name", "is required"))?;
    if request.slots.is_some_and(|slots| !SLOTS.contains(&slots)) {
        let problem = format!("is not between {} and {}", SLOTS.start(), SLOTS.end());
        return Err(Refusal::field("slots", problem));
    }
    let change = QueueChange {
        slots: request.slots,
        paused: request.paused,
    };
    let queue = service.supervisor.update_queue(name, change).await?;
    Ok(v1::UpdateQueueResponse {
        queue: Some(show(queue)),
    })
}
