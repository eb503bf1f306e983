//! Events that have happened and that the journal has refused, in their order.
//!
//! A task does not wait for the disk: what stops it goes on, and its events are recorded when the disk
//! takes them. Until then they are told to no watcher.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    journal::{Entry, JournalError},
    task::{EventKind, Task},
};

/// The delay before the first further attempt, and the longest one: thousands of tasks may wait for the
/// same disk.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LONGEST_RETRY: Duration = Duration::from_secs(2);

/// The events of one task that are still to be recorded.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    events: VecDeque<(EventKind, Task)>,
    refusal: Option<Refusal>,
}

/// The latest refusal of the journal.
#[derive(Debug)]
struct Refusal {
    error: Arc<JournalError>,
    /// The time of the next attempt, and the delay before it.
    retry_at: Instant,
    delay: Duration,
}

impl Backlog {
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event. It takes the place of an event of its kind that is the latest: the task then has
    /// all that the other would have told, and a disk that stays full costs bounded memory.
    pub(super) fn push(&mut self, kind: EventKind, task: Task) {
        let is_superseded = |(last, _): &(EventKind, Task)| is_same_news(*last, kind);
        if self.events.back().is_some_and(is_superseded) {
            self.events.pop_back();
        }
        self.events.push_back((kind, task));
    }

    /// Drops events about output, silence and progress before an event of another kind: that one may use the
    /// reserve of a full disk, and they may not. The task has all that they would have told, except for the lines that matched.
    pub(super) fn make_way_for(&mut self, kind: EventKind) {
        if !gives_way(kind) {
            self.events.retain(|(waiting, _)| !gives_way(*waiting));
        }
    }

    /// The event to record next.
    pub(super) fn first(&self) -> Option<Entry> {
        let (kind, task) = self.events.front()?;
        Some(Entry {
            kind: *kind,
            task: task.clone(),
            request: None,
        })
    }

    /// The task after the latest event.
    pub(super) fn latest(&self) -> Option<Arc<Task>> {
        let (_, task) = self.events.back()?;
        Some(Arc::new(task.clone()))
    }

    /// Forgets the first event, which is recorded.
    pub(super) fn pop(&mut self) {
        self.events.pop_front();
    }

    /// Notes that the journal has refused an event, and schedules the next attempt, after twice the delay
    /// of the last one.
    pub(super) fn refused(&mut self, error: Arc<JournalError>) {
        let earlier = self.refusal.as_ref().map(|refusal| refusal.delay * 2);
        let delay = earlier.unwrap_or(FIRST_RETRY).min(LONGEST_RETRY);
        self.refusal = Some(Refusal {
            error,
            retry_at: Instant::now() + delay,
            delay,
        });
    }

    /// Notes that the journal takes events.
    pub(super) fn accepted(&mut self) {
        self.refusal = None;
    }

    /// The reason why events are not recorded.
    pub(super) fn error(&self) -> Option<Arc<JournalError>> {
        let refusal = self.refusal.as_ref();
        refusal.map(|refusal| Arc::clone(&refusal.error))
    }

    /// Waits for the time of the next attempt; for ever where there is nothing to attempt.
    pub(super) async fn retry_due(&self) {
        match &self.refusal {
            // On the heap: few actors wait for it.
            Some(refusal) => Box::pin(tokio::time::sleep_until(refusal.retry_at)).await,
            None => std::future::pending().await,
        }
    }
}

/// True for events about silence and progress, which may come any number of times.
fn is_passing(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Stale | EventKind::NeedsInput | EventKind::Active | EventKind::Progress
    )
}

/// True for events that may not use the reserve of a full disk.
fn gives_way(kind: EventKind) -> bool {
    is_passing(kind) || kind == EventKind::Matched
}

/// True if the later event makes the earlier one, right before it, superfluous.
fn is_same_news(earlier: EventKind, later: EventKind) -> bool {
    let is_repeated = earlier == later && earlier != EventKind::Matched;
    is_repeated || (is_passing(earlier) && is_passing(later))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::task::{Command, IdKey, Kind, Seq, Spec, Timestamp};

    fn task(output_bytes: u64) -> Task {
        let id = IdKey(1).task_id(Kind::Shell, Seq(1));
        let spec = Spec::new(Command::Argv(vec!["true".to_owned()]));
        Task {
            output_bytes,
            ..Task::new(Seq(1), id, spec, Timestamp(1))
        }
    }

    /// O14: only those may use the reserve of a full disk.
    #[test]
    fn events_about_silence_make_way_for_a_stop_or_an_end() {
        let mut backlog = Backlog::default();
        backlog.push(EventKind::Detached, task(1));
        backlog.push(EventKind::Stale, task(1));
        backlog.make_way_for(EventKind::Active);
        assert_eq!(backlog.events.len(), 2);
        backlog.make_way_for(EventKind::Stopping);
        let kinds: Vec<_> = backlog.events.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [EventKind::Detached]);
    }

    /// O14
    #[test]
    fn a_refused_event_is_kept_in_order_and_replaced_by_the_next_of_its_kind_alone() {
        let mut backlog = Backlog::default();
        let kinds = [
            EventKind::Started,
            EventKind::Stale,
            EventKind::Active,
            EventKind::Stale,
            EventKind::Stopping,
            EventKind::KillOverdue,
            EventKind::KillOverdue,
            EventKind::Ended,
        ];
        for (number, kind) in kinds.into_iter().enumerate() {
            backlog.push(kind, task(number as u64));
        }
        let mut kept = Vec::new();
        while let Some(entry) = backlog.first() {
            kept.push((entry.kind, entry.task.output_bytes));
            backlog.pop();
        }
        let expected = [
            (EventKind::Started, 0),
            (EventKind::Stale, 3),
            (EventKind::Stopping, 4),
            (EventKind::KillOverdue, 6),
            (EventKind::Ended, 7),
        ];
        assert_eq!(kept, expected);
    }
}
