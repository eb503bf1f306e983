//! A watcher that comes back after every crash, and asks for what follows on what it has seen.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
};

use heeler_proto::v1::{TaskEvent, TaskEventType, watch_events_response::Item};
use tokio::task::JoinHandle;

use crate::{Api, eventually, waiting::STEP};

/// It watches until it is dropped.
#[derive(Debug)]
pub struct Follower {
    seen: Arc<Mutex<Seen>>,
    watching: JoinHandle<()>,
}

/// What a watcher was told, and what was wrong with it.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// In the order in which they came.
    pub events: Vec<TaskEvent>,
    /// Revisions that came out of turn.
    pub faults: Vec<String>,
    /// How often it has found a server.
    pub connections: usize,
}

impl Seen {
    /// The last revision.
    pub fn head(&self) -> u64 {
        self.events.last().map_or(0, |event| event.revision)
    }

    /// The events as they are delivered now: after Remove, an end has no output tail (L9).
    pub fn events_now(&self) -> Vec<TaskEvent> {
        let removals = |event: &&TaskEvent| event.r#type() == TaskEventType::Removed;
        let id = |event: &TaskEvent| event.task.as_ref().map(|task| task.id.clone());
        let removed: HashSet<_> = self.events.iter().filter(removals).map(id).collect();
        let mut events = self.events.clone();
        for event in events
            .iter_mut()
            .filter(|event| removed.contains(&id(event)))
        {
            let wrote = event
                .task
                .as_ref()
                .is_some_and(|task| task.output_bytes > 0);
            event.output_tail.take_if(|_| wrote);
        }
        events
    }

    fn take(&mut self, event: TaskEvent) {
        if event.revision != self.head() + 1 {
            let fault = format!("revision {} after {}", event.revision, self.head());
            self.faults.push(fault);
        }
        self.events.push(event);
    }
}

impl Follower {
    /// Of whoever serves at this address, from the first event on.
    pub fn of(address: String) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watching = tokio::spawn(follow(address, Arc::clone(&seen)));
        Self { seen, watching }
    }

    /// Until it has seen this revision; all that it has seen then.
    pub async fn up_to(&self, revision: u64) -> Seen {
        let caught_up = || lock(&self.seen).head() >= revision;
        eventually(&format!("the watcher has seen {revision}"), caught_up).await;
        lock(&self.seen).clone()
    }

    /// That every event there has been was seen once, in order, as it still is.
    pub async fn assert_whole(&self, api: &Api) -> Vec<TaskEvent> {
        let history = api.history().await;
        let seen = self.up_to(history.len() as u64).await;
        assert_eq!(seen.faults, [""; 0]);
        assert_eq!(seen.events_now(), history, "the past is what it was");
        history
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

async fn follow(address: String, seen: Arc<Mutex<Seen>>) {
    loop {
        watch_once(&address, &seen).await;
        tokio::time::sleep(STEP).await;
    }
}

/// Until the stream breaks.
async fn watch_once(address: &str, seen: &Mutex<Seen>) {
    let Ok(api) = Api::connect(address).await else {
        return;
    };
    let request = heeler_proto::v1::WatchEventsRequest {
        after_revision: Some(lock(seen).head()),
        ..Default::default()
    };
    let Ok(mut watch) = api.watch(request).await else {
        return;
    };
    lock(seen).connections += 1;
    while let Ok(item) = watch.try_next().await {
        match item {
            Item::Event(event) => lock(seen).take(event),
            Item::Bookmark(_) => {}
            Item::Initial(task) => lock(seen).faults.push(format!("initial: {task:?}")),
        }
    }
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().expect("nobody panics with it")
}
