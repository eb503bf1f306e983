//! A watcher that reconnects after every crash of the server and resumes behind its last revision.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard},
};

use heeler_proto::v1::{TaskEvent, TaskEventType, watch_events_response::Item};
use tokio::task::JoinHandle;

use crate::{Api, eventually, history::after, waiting::STEP};

/// A watcher that runs until it is dropped.
#[derive(Debug)]
pub struct Follower {
    seen: Arc<Mutex<Seen>>,
    watching: JoinHandle<()>,
}

/// The events that a watcher received, and the faults in them.
#[derive(Debug, Default, Clone)]
pub struct Seen {
    /// In order of arrival.
    pub events: Vec<TaskEvent>,
    /// Revisions that were skipped or repeated.
    pub faults: Vec<String>,
    /// The number of connections made.
    pub connections: usize,
}

impl Seen {
    /// The last revision received; 0 before the first.
    pub fn head(&self) -> u64 {
        self.events.last().map_or(0, |event| event.revision)
    }

    /// The events as they are delivered now: after Remove, an end has no output tail and a match no text
    /// (L9).
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
            for line in event.r#match.iter_mut().flat_map(|of| &mut of.lines) {
                line.text = None;
            }
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
    /// Watches the daemon at this address from the first event.
    pub fn of(address: String) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let watching = tokio::spawn(follow(address, Arc::clone(&seen)));
        Self { seen, watching }
    }

    /// Waits for a revision, and returns everything received by then.
    pub async fn up_to(&self, revision: u64) -> Seen {
        let caught_up = || lock(&self.seen).head() >= revision;
        eventually(&format!("revision {revision} at the watcher"), caught_up).await;
        lock(&self.seen).clone()
    }

    /// Asserts that the watcher received every event once, in order, as the journal has it.
    pub async fn assert_whole(&self, api: &Api) -> Vec<TaskEvent> {
        let history = api.history().await;
        let seen = self.up_to(history.len() as u64).await;
        assert_eq!(seen.faults, [""; 0]);
        assert_eq!(
            seen.events_now(),
            history,
            "events received differ from events kept"
        );
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

/// Watches until the stream breaks.
async fn watch_once(address: &str, seen: &Mutex<Seen>) {
    let Ok(api) = Api::connect(address).await else {
        return;
    };
    let request = after(lock(seen).head());
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
    seen.lock().expect("no panic while it is locked")
}
