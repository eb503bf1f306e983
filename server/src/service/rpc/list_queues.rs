//! ListQueues: the queues that have live tasks or settings other than the defaults.

use heeler_proto::v1;

use crate::{service::Service, supervisor::QueueState};

pub(super) fn list_queues(service: &Service) -> v1::ListQueuesResponse {
    let queues = service.supervisor.queues();
    v1::ListQueuesResponse {
        queues: queues.into_iter().map(show).collect(),
    }
}

pub(super) fn show(queue: QueueState) -> v1::Queue {
    v1::Queue {
        name: queue.name,
        slots: queue.settings.slots,
        paused: queue.settings.paused,
        running: queue.running as u32,
        waiting: queue.waiting as u32,
    }
}
