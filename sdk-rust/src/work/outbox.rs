//! The numbered messages of a worker, until the daemon has acknowledged them.

use std::collections::VecDeque;

use heeler_proto::v1::{WorkRequest, work_request::Item};

/// Messages that may be without an acknowledgement. Further ones wait.
const UNACKNOWLEDGED: usize = 256;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    sent: VecDeque<WorkRequest>,
    latest: u64,
}

impl Outbox {
    pub(super) fn has_room(&self) -> bool {
        self.sent.len() < UNACKNOWLEDGED
    }

    /// Numbers a message and keeps it.
    pub(super) fn push(&mut self, item: Item) -> WorkRequest {
        self.latest += 1;
        let request = WorkRequest {
            sequence: self.latest,
            item: Some(item),
        };
        self.sent.push_back(request.clone());
        request
    }

    /// Forgets the messages up to a number; returns true if one of them was a result.
    pub(super) fn acknowledge(&mut self, sequence: u64) -> bool {
        let mut has_result = false;
        while let Some(request) = self.sent.front()
            && request.sequence <= sequence
        {
            has_result |= matches!(request.item, Some(Item::Result(_)));
            self.sent.pop_front();
        }
        has_result
    }

    /// The messages to send again, in order.
    pub(super) fn unacknowledged(&self) -> impl Iterator<Item = WorkRequest> + '_ {
        self.sent.iter().cloned()
    }

    pub(super) fn has_result(&self) -> bool {
        let is_result = |one: &WorkRequest| matches!(one.item, Some(Item::Result(_)));
        self.sent.iter().any(is_result)
    }
}

#[cfg(test)]
mod tests {
    use heeler_proto::v1::{ProgressUpdate, WorkerResult};

    use super::*;

    /// P8
    #[test]
    fn what_is_not_acknowledged_is_sent_again_in_order() {
        let mut outbox = Outbox::default();
        for _ in 0..3 {
            outbox.push(Item::Progress(ProgressUpdate::default()));
        }
        outbox.push(Item::Result(WorkerResult::default()));
        assert!(!outbox.acknowledge(2), "the result is not among them");
        let again: Vec<u64> = outbox.unacknowledged().map(|one| one.sequence).collect();
        assert_eq!(again, [3, 4]);
        assert!(outbox.has_result());
        assert!(outbox.acknowledge(4));
        assert!(!outbox.has_result() && outbox.has_room());
    }
}
