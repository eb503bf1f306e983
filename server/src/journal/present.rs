//! The present, in memory: the live tasks, the newest events, and the number that wakes watchers.
//!
//! It is changed by the writer alone, after a commit, and holds nothing that is not on disk. There
//! is nothing in it for a finished task, of which there may be any number.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard},
};

use tokio::sync::watch;

use super::ring::{Ring, TaskRecord, Weighed};
use crate::task::{Fact, Filter, Revision, Seq, Task, TaskId};

/// What is true now.
#[derive(Debug)]
pub(super) struct Present {
    facts: RwLock<Facts>,
    head: watch::Sender<Revision>,
}

#[derive(Debug, Default)]
struct Facts {
    head: Revision,
    live: BTreeMap<Seq, LiveTask>,
    ids: HashMap<TaskId, Seq>,
    ring: Ring,
}

/// A task that is not over.
#[derive(Debug, Clone)]
pub(super) struct LiveTask {
    pub(super) task: Arc<Task>,
    /// The revision of its first event.
    pub(super) created: Revision,
    /// The revision of the first at which its leader had run.
    pub(super) started: Option<Revision>,
    /// The size of its record.
    pub(super) bytes: usize,
}

impl LiveTask {
    /// The revision of what its Spawn was answered with, if it was.
    pub(super) fn answer(&self) -> Option<Revision> {
        match self.task.is_answered_waiting() {
            true => Some(self.created),
            false => self.started,
        }
    }
}

/// Which live tasks to give.
#[derive(Debug)]
pub(super) struct LiveQuery<'a> {
    pub(super) filter: &'a Filter,
    /// Created no later than this.
    pub(super) created_by: Option<Revision>,
    /// Older than this.
    pub(super) below: Option<Seq>,
    pub(super) limit: usize,
}

impl Present {
    /// The present as the disk has it at start-up.
    pub(super) fn new(head: Revision, live: Vec<LiveTask>) -> Self {
        let ids = live
            .iter()
            .map(|live| (live.task.id.clone(), live.task.seq))
            .collect();
        let live = live.into_iter().map(|live| (live.task.seq, live)).collect();
        let facts = Facts {
            head,
            live,
            ids,
            ring: Ring::default(),
        };
        Self {
            facts: RwLock::new(facts),
            head: watch::Sender::new(head),
        }
    }

    /// Takes in what has just become durable, then wakes everybody.
    pub(super) fn publish(&self, made: impl IntoIterator<Item = Weighed>) {
        let head = {
            let mut facts = self.facts.write().unwrap_or_else(PoisonError::into_inner);
            for weighed in made {
                facts.take(weighed);
            }
            facts.head
        };
        self.head.send_replace(head);
    }

    /// As whoever reads sees it: the number that wakes watchers follows a moment later.
    pub(super) fn head(&self) -> Revision {
        self.facts().head
    }

    pub(super) fn watch(&self) -> watch::Receiver<Revision> {
        self.head.subscribe()
    }

    /// Up to `limit` events after a revision, if they are still in memory.
    pub(super) fn after(&self, after: Revision, limit: usize) -> Option<Vec<Fact>> {
        let facts = self.facts();
        if after == facts.head {
            Some(Vec::new())
        } else {
            facts.ring.after(after, limit)
        }
    }

    /// The event at a revision, if it is still in memory.
    pub(super) fn at(&self, revision: Revision) -> Option<Weighed> {
        self.facts().ring.at(revision)
    }

    /// A live task.
    pub(super) fn task(&self, id: &TaskId) -> Option<LiveTask> {
        let facts = self.facts();
        let seq = facts.ids.get(id)?;
        facts.live.get(seq).cloned()
    }

    /// Every live task, oldest first.
    pub(super) fn live(&self) -> Vec<Arc<Task>> {
        self.facts()
            .live
            .values()
            .map(|live| Arc::clone(&live.task))
            .collect()
    }

    /// Live tasks, newest first, and the revision at which this was true.
    pub(super) fn list(&self, query: &LiveQuery<'_>) -> (Revision, Vec<LiveTask>) {
        let facts = self.facts();
        let below = query.below.unwrap_or(Seq(u64::MAX));
        let older = facts.live.range(..below).rev().map(|(_, live)| live);
        let listed = older
            .filter(|live| query.created_by.is_none_or(|latest| live.created <= latest))
            .filter(|live| query.filter.matches(&live.task))
            .take(query.limit)
            .cloned()
            .collect();
        (facts.head, listed)
    }

    fn facts(&self) -> RwLockReadGuard<'_, Facts> {
        self.facts.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Facts {
    fn take(&mut self, weighed: Weighed) {
        self.head = weighed.revision();
        if let Some(record) = weighed.task_record() {
            self.take_task(&record);
        }
        self.ring.push(weighed);
    }

    fn take_task(&mut self, TaskRecord { event, bytes }: &TaskRecord) {
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
                bytes: *bytes,
            };
            self.live.insert(task.seq, live);
        } else if self.live.remove(&task.seq).is_some() {
            self.ids.remove(&task.id);
        }
    }
}
