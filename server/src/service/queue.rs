//! UpdateQueue and ListQueues.

use heeler_proto::v1;

use super::{Service, check, refusal::Refusal};
use crate::supervisor::{QueueChange, QueueState};

/// The most that may run at a time: as many as wait, at the most.
const SLOTS: std::ops::RangeInclusive<u32> = 1..=10_000;

pub(super) async fn update(
    service: &Service,
    request: v1::UpdateQueueRequest,
) -> Result<v1::UpdateQueueResponse, Refusal> {
    if request.name.is_empty() {
        return Err(Refusal::field("name", "is required"));
    }
    let name = check::text("name", request.name, check::SHORT_TEXT)?;
    if request.slots.is_some_and(|slots| !SLOTS.contains(&slots)) {
        let problem = format!("is not within {} to {}", SLOTS.start(), SLOTS.end());
        return Err(Refusal::field("slots", problem));
    }
    let change = QueueChange {
        slots: request.slots,
        paused: request.paused,
    };
    let queue = service.supervisor.update_queue(name, change).await?;
    Ok(v1::UpdateQueueResponse {
        queue: Some(shown(queue)),
    })
}

pub(super) fn list(service: &Service) -> v1::ListQueuesResponse {
    let queues = service.supervisor.queues();
    v1::ListQueuesResponse {
        queues: queues.into_iter().map(shown).collect(),
    }
}

fn shown(queue: QueueState) -> v1::Queue {
    v1::Queue {
        name: queue.name,
        slots: queue.settings.slots,
        paused: queue.settings.paused,
        running: queue.running as u32,
        waiting: queue.waiting as u32,
    }
}
