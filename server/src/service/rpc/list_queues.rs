//! ListQueues: the queues that have live tasks or settings other than the defaults.

use std::collections::BTreeMap;

use heeler_proto::v1;

use crate::{
    service::Service,
    supervisor::{Handle, QueueState},
    task::Filter,
};

pub(super) fn list_queues(service: &Service) -> v1::ListQueuesResponse {
    let queues = match service.authority.bound() {
        None => service.supervisor.queues(),
        Some(_) => own_queues(service),
    };
    v1::ListQueuesResponse {
        queues: queues.into_iter().map(show).collect(),
    }
}

/// The queues in which a caller inside of a task has live tasks. Only these are counted.
fn own_queues(service: &Service) -> Vec<QueueState> {
    let own = service
        .supervisor
        .live_matching(&service.seen(Filter::default()));
    let mut queues: BTreeMap<String, QueueState> = BTreeMap::new();
    for task in own.iter().map(Handle::task) {
        let Some(name) = &task.spec.queue else {
            continue;
        };
        let queue = queues.entry(name.clone()).or_insert_with(|| QueueState {
            running: 0,
            waiting: 0,
            ..service.supervisor.queue(name)
        });
        match task.is_waiting() {
            true => queue.waiting += 1,
            false => queue.running += 1,
        }
    }
    queues.into_values().collect()
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
