//! The journal's events, past and live.

use heeler_proto::v1::{BackgroundTask, TaskEvent, TaskEventType, TaskState, WatchEventsRequest};
use tonic::{Code, Status};

use crate::{
    Api, DEADLINE, Refusal, Watch,
    waiting::STEP,
    watch::{is_of, types},
};

impl Api {
    pub async fn watch(&self, request: WatchEventsRequest) -> Result<Watch, Status> {
        let stream = self.raw().watch_events(request).await?.into_inner();
        Ok(Watch::new(stream))
    }

    /// Streams every event after a revision, then live ones.
    pub async fn watch_after(&self, revision: u64) -> Watch {
        self.watch(after(revision)).await.expect("a stream")
    }

    /// Every event since the first. Their revisions are the numbers from 1, without a gap.
    pub async fn history(&self) -> Vec<TaskEvent> {
        let newest = self.revision().await;
        let events = self.watch_after(0).await.up_to(newest).await;
        let revisions: Vec<u64> = events.iter().map(|event| event.revision).collect();
        assert_eq!(
            revisions,
            (1..=newest).collect::<Vec<_>>(),
            "a gap in the journal"
        );
        events
    }

    /// The events of one task.
    pub async fn history_of(&self, id: &str) -> Vec<TaskEvent> {
        let mut history = self.history().await;
        history.retain(|event| is_of(event, id));
        history
    }

    /// The types of one task's events, in order.
    pub async fn event_types(&self, id: &str) -> Vec<TaskEventType> {
        types(&self.history_of(id).await)
    }

    /// Waits until a task is in a state.
    pub async fn until(&self, id: &str, state: TaskState) -> BackgroundTask {
        let mut watch = self.watch_after(0).await;
        let reached = |event: &TaskEvent| {
            let task = event.task.as_ref();
            task.is_some_and(|task| task.id == id && task.state() == state)
        };
        let last = watch.until(reached).await.pop();
        last.and_then(|event| event.task).expect("the task's event")
    }

    /// Asserts that each task was admitted only after the end of the one before it.
    pub async fn assert_one_after_the_other(&self, ids: &[String]) {
        let history = self.history().await;
        let revision = |id: &str, wanted: TaskEventType| {
            let found = revision_of(&history, id, wanted);
            found.unwrap_or_else(|| panic!("no {wanted:?} of {id}"))
        };
        for pair in ids.windows(2) {
            let ended = revision(&pair[0], TaskEventType::Ended);
            let admitted = revision(&pair[1], TaskEventType::Admitted);
            assert!(ended < admitted, "{} did not wait for {}", pair[1], pair[0]);
        }
    }

    /// Waits until the oldest kept event is at least this one, and returns its revision.
    pub async fn oldest_kept(&self, at_least: u64) -> u64 {
        let end = tokio::time::Instant::now() + DEADLINE;
        loop {
            if let Err(status) = self.watch(after(0)).await {
                let refusal = Refusal::of(&status);
                assert_eq!(refusal.code, Code::OutOfRange, "{refusal:?}");
                let oldest = refusal.value("oldest").parse().expect("a revision");
                if oldest >= at_least {
                    return oldest;
                }
            }
            assert!(tokio::time::Instant::now() < end, "no event was pruned");
            tokio::time::sleep(STEP).await;
        }
    }
}

/// A watch from behind a revision.
pub fn after(revision: u64) -> WatchEventsRequest {
    WatchEventsRequest {
        after_revision: Some(revision),
        ..Default::default()
    }
}

/// The revision of a task's first event of a type.
pub fn revision_of(history: &[TaskEvent], id: &str, wanted: TaskEventType) -> Option<u64> {
    let mut events = history.iter().filter(|event| is_of(event, id));
    let found = events.find(|event| event.r#type() == wanted);
    found.map(|event| event.revision)
}
