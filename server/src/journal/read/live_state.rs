//! The live tasks and the newest events, in memory, and the revision that wakes watchers.
//!
//! Changed by the writer alone, after a commit; holds nothing that is not on disk, and nothing for a
//! finished task beyond its newest events.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use tokio::sync::watch;

use super::{SizedEvent, SizedFact, ring::Ring};
use crate::task::{Activity, Fact, Filter, Revision, Seq, Task, TaskId, Timestamp};

/// The state as of the latest commit.
#[derive(Debug)]
pub(in crate::journal) struct LiveState {
    state: RwLock<State>,
    head: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct State {
    head: Revision,
    live: BTreeMap<Seq, LiveTask>,
    ids: HashMap<TaskId, Seq>,
    ring: Ring,
}

/// A live task.
#[derive(Debug, Clone)]
pub(in crate::journal) struct LiveTask {
    pub(in crate::journal) task: Arc<Task>,
    /// The revision of its first event.
    pub(super) created: Revision,
    /// The revision of the first event with its leader running.
    pub(super) started: Option<Revision>,
    /// The time of its latest event.
    pub(super) changed: Timestamp,
    /// The encoded size of its latest event.
    pub(super) bytes: usize,
}

/// A session that has live tasks.
#[derive(Debug, Clone)]
pub(crate) struct LiveSession {
    pub(crate) session_id: String,
    pub(crate) activity: Activity,
    /// The creation of its oldest live task.
    pub(crate) since: Timestamp,
    /// The time of the latest event of any live task.
    pub(crate) changed: Timestamp,
    /// Its live tasks, oldest first.
    pub(crate) tasks: Vec<Arc<Task>>,
}

impl LiveSession {
    fn add(&mut self, live: &LiveTask) {
        let task = &live.task;
        self.since = self.since.min(task.created);
        self.changed = self.changed.max(live.changed);
        self.activity.stale += u32::from(task.stale.is_some());
        let (count, named) = self.activity.of_kind(task.spec.kind);
        *count += 1;
        named.push(task.seq);
        if named.len() > Activity::MOST_NAMED {
            named.remove(0);
        }
        self.tasks.push(Arc::clone(task));
    }
}

/// Selects sessions.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionQuery {
    /// The live tasks that count.
    pub(crate) filter: Filter,
    /// With an id that follows this one.
    pub(crate) after: String,
    pub(crate) limit: usize,
}

impl LiveTask {
    /// The revision of the event with which its Spawn was answered, if it was.
    pub(super) fn answer(&self) -> Option<Revision> {
        match self.task.is_answered_waiting() {
            true => Some(self.created),
            false => self.started,
        }
    }
}

/// Selects live tasks.
#[derive(Debug)]
pub(super) struct LiveQuery<'a> {
    pub(super) filter: &'a Filter,
    /// Created at this revision or before it.
    pub(super) created_by: Option<Revision>,
    /// With a lower number than this.
    pub(super) below: Option<Seq>,
    pub(super) limit: usize,
}

impl LiveState {
    /// The state at start-up, as read from the file.
    pub(in crate::journal) fn new(head: Revision, live: Vec<LiveTask>) -> Self {
        let ids = live
            .iter()
            .map(|live| (live.task.id.clone(), live.task.seq))
            .collect();
        let live = live.into_iter().map(|live| (live.task.seq, live)).collect();
        let state = State {
            head,
            live,
            ids,
            ring: Ring::default(),
        };
        Self {
            state: RwLock::new(state),
            head: watch::Sender::new(head),
        }
    }

    /// Applies facts that were committed, then wakes the watchers.
    pub(in crate::journal) fn publish(&self, facts: impl IntoIterator<Item = SizedFact>) {
        let head = {
            let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
            for sized in facts {
                state.apply(sized);
            }
            state.head
        };
        self.head.send_replace(head);
    }

    /// The head as readers see it; watchers are woken a moment later.
    pub(in crate::journal) fn head(&self) -> Revision {
        self.state().head
    }

    pub(super) fn watch(&self) -> watch::Receiver<Revision> {
        self.head.subscribe()
    }

    /// Up to `limit` facts after a revision; none if the first of them is no longer in memory.
    pub(in crate::journal) fn after(&self, after: Revision, limit: usize) -> Option<Vec<Fact>> {
        let state = self.state();
        if after == state.head {
            Some(Vec::new())
        } else {
            state.ring.after(after, limit)
        }
    }

    /// The fact at a revision, if it is in memory.
    pub(super) fn at(&self, revision: Revision) -> Option<SizedFact> {
        self.state().ring.at(revision)
    }

    /// A live task.
    pub(in crate::journal) fn task(&self, id: &TaskId) -> Option<LiveTask> {
        let state = self.state();
        let seq = state.ids.get(id)?;
        state.live.get(seq).cloned()
    }

    /// The number of live tasks.
    pub(in crate::journal) fn count(&self) -> usize {
        self.state().live.len()
    }

    /// Every live task, oldest first.
    pub(in crate::journal) fn tasks(&self) -> Vec<Arc<Task>> {
        self.state()
            .live
            .values()
            .map(|live| Arc::clone(&live.task))
            .collect()
    }

    /// Live tasks, newest first, and the revision at which this was true.
    pub(super) fn list(&self, query: &LiveQuery<'_>) -> (Revision, Vec<LiveTask>) {
        let state = self.state();
        let below = query.below.unwrap_or(Seq(u64::MAX));
        let older = state.live.range(..below).rev().map(|(_, live)| live);
        let listed = older
            .filter(|live| query.created_by.is_none_or(|latest| live.created <= latest))
            .filter(|live| query.filter.matches(&live.task))
            .take(query.limit)
            .cloned()
            .collect();
        (state.head, listed)
    }

    /// The sessions of the live tasks that match, by id, and the revision at which this was true.
    pub(super) fn sessions(&self, query: &SessionQuery) -> (Revision, Vec<LiveSession>) {
        let state = self.state();
        let mut sessions: BTreeMap<&str, LiveSession> = BTreeMap::new();
        let is_next = |live: &&LiveTask| *live.task.spec.session_id > *query.after;
        let matching = state.live.values().filter(is_next);
        for live in matching.filter(|live| query.filter.matches(&live.task)) {
            let id = &*live.task.spec.session_id;
            let session = sessions.entry(id).or_insert_with(|| LiveSession {
                session_id: id.to_owned(),
                activity: Activity::default(),
                since: live.task.created,
                changed: live.changed,
                tasks: Vec::new(),
            });
            session.add(live);
            if sessions.len() > query.limit {
                sessions.pop_last();
            }
        }
        (state.head, sessions.into_values().collect())
    }

    fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn apply(&mut self, sized: SizedFact) {
        self.head = sized.revision();
        if let Some(event) = sized.event() {
            self.apply_event(&event);
        }
        self.ring.push(sized);
    }

    fn apply_event(&mut self, SizedEvent { event, bytes }: &SizedEvent) {
        let task = &event.task;
        if task.is_live() {
            let earlier = self.live.get(&task.seq);
            if earlier.is_none() {
                self.ids.insert(task.id.clone(), task.seq);
            }
            let live = LiveTask {
                task: Arc::clone(task),
                created: earlier.map_or(event.revision, |live| live.created),
                started: earlier
                    .and_then(|live| live.started)
                    .or_else(|| task.started.as_ref().map(|_| event.revision)),
                changed: event.at,
                bytes: *bytes,
            };
            self.live.insert(task.seq, live);
        } else if self.live.remove(&task.seq).is_some() {
            self.ids.remove(&task.id);
        }
    }
}
