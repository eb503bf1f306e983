//! The live tasks, and how to reach their actors.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot, watch};

use super::{
    CancelRequest, DetachRequest,
    actor::{Cancelled, Detached, Message},
};
use crate::{
    journal::JournalError,
    task::{Filter, Placement, Task, TaskId},
};

/// Messages that an actor may have waiting: senders then wait their turn, which they can.
const INBOX: usize = 32;

/// A live task, from outside.
#[derive(Debug, Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    state: watch::Receiver<Arc<Task>>,
    output_end: watch::Receiver<u64>,
    holders: watch::Sender<usize>,
}

/// A hold on a task, until it is dropped.
#[derive(Debug)]
pub struct Holding(watch::Sender<usize>);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.send_modify(|holders| *holders -= 1);
    }
}

/// An actor's ends of its handle.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) state: watch::Sender<Arc<Task>>,
    pub(super) output_end: watch::Sender<u64>,
    /// How many hold it.
    pub(super) holders: watch::Receiver<usize>,
}

/// Everything that is live.
#[derive(Debug)]
pub(super) struct Registry {
    max: usize,
    places: Mutex<Places>,
}

/// The tasks, and how many of them count: one whose tree is gone does not, though it is still to be
/// recorded as ended.
#[derive(Debug, Default)]
struct Places {
    tasks: HashMap<TaskId, Handle>,
    vacated: HashSet<TaskId>,
}

/// No more tasks may be live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{running} tasks are live, and {max} may be")]
pub struct LimitReached {
    /// How many there are.
    pub running: usize,
    /// How many there may be.
    pub max: usize,
}

impl Registry {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            places: Mutex::default(),
        }
    }

    /// Takes a place for a new task, if there is one.
    pub(super) fn admit(&self, task: &Arc<Task>) -> Result<Ends, LimitReached> {
        let mut places = self.lock();
        let running = places.taken();
        if running >= self.max {
            return Err(LimitReached {
                running,
                max: self.max,
            });
        }
        Ok(places.insert(task))
    }

    /// Takes back a task of an earlier server, whatever the limit is now.
    pub(super) fn readmit(&self, task: &Arc<Task>) -> Ends {
        self.lock().insert(task)
    }

    /// Frees a task's place, before it is told that it is over.
    pub(super) fn vacate(&self, id: &TaskId) {
        let mut places = self.lock();
        if places.tasks.contains_key(id) {
            places.vacated.insert(id.clone());
        }
    }

    /// Forgets a task that is over.
    pub(super) fn remove(&self, id: &TaskId) {
        let mut places = self.lock();
        places.tasks.remove(id);
        places.vacated.remove(id);
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Handle> {
        self.lock().tasks.get(id).cloned()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().taken()
    }

    /// Those that match, newest first.
    pub(super) fn matching(&self, filter: &Filter) -> Vec<Handle> {
        let live = |handle: &&Handle| {
            let task = handle.state.borrow();
            task.is_live() && filter.matches(&task)
        };
        let mut found: Vec<Handle> = self.lock().tasks.values().filter(live).cloned().collect();
        found.sort_by_key(|handle| std::cmp::Reverse(handle.state.borrow().seq));
        found
    }

    /// Nothing that runs under the lock can fail half-way, so a poisoned one is sound.
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Places {
    fn taken(&self) -> usize {
        self.tasks.len() - self.vacated.len()
    }

    fn insert(&mut self, task: &Arc<Task>) -> Ends {
        let (inbox, inbox_end) = mpsc::channel(INBOX);
        let (state_end, state) = watch::channel(Arc::clone(task));
        let (output_end_end, output_end) = watch::channel(0);
        let (holders, holders_end) = watch::channel(0);
        self.tasks.insert(
            task.id.clone(),
            Handle {
                inbox,
                state,
                output_end,
                holders,
            },
        );
        Ends {
            inbox: inbox_end,
            state: state_end,
            output_end: output_end_end,
            holders: holders_end,
        }
    }
}

impl Handle {
    /// The task after its latest durable fact.
    pub fn task(&self) -> Arc<Task> {
        Arc::clone(&self.state.borrow())
    }

    /// Waits until the task is over; `None` if the server lets go of it first.
    pub async fn ended(&self) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let task = state.wait_for(|task| !task.is_live()).await.ok()?;
        Some(Arc::clone(&task))
    }

    /// Holds the task, if it is in the foreground, as long as what this gives is kept.
    pub fn hold(&self) -> Holding {
        self.holders.send_modify(|holders| *holders += 1);
        Holding(self.holders.clone())
    }

    /// Waits until the task holds nobody; `None` if the server lets go of it first.
    pub async fn released(&self) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let task = state.wait_for(|task| task.is_released()).await.ok()?;
        Some(Arc::clone(&task))
    }

    /// Waits until its leader is gone or, for one that held somebody, until it does no more; `None` if
    /// the server lets go of it first.
    pub async fn let_go(&self, from: Placement) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let settled = |task: &Arc<Task>| {
            let is_exit = task.leader_end.is_some() || !task.is_live();
            is_exit || from == Placement::Foreground && task.is_released()
        };
        let task = state.wait_for(settled).await.ok()?;
        Some(Arc::clone(&task))
    }

    /// Waits until the task is over, or its kill is overdue; `None` if the server lets go of it first.
    pub(super) async fn stopped(&self) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        // A live task has a proof only when its kill is overdue.
        let resists = |task: &Task| task.stop.as_ref().is_some_and(|stop| stop.proof.is_some());
        let settled = |task: &Arc<Task>| !task.is_live() || resists(task);
        let task = state.wait_for(settled).await.ok()?;
        Some(Arc::clone(&task))
    }

    /// Waits until the task has started or is over; `None` if the server lets go of it first.
    pub(super) async fn started(&self) -> Option<()> {
        let mut state = self.state.clone();
        let settled = |task: &Arc<Task>| task.started.is_some() || !task.is_live();
        state.wait_for(settled).await.ok().map(drop)
    }

    /// Waits until there may be output beyond `offset`, or the task is over.
    pub async fn output_beyond(&self, offset: u64) {
        let mut output_end = self.output_end.clone();
        output_end.mark_unchanged();
        if self
            .inbox
            .send(Message::Follow { beyond: offset })
            .await
            .is_err()
        {
            return;
        }
        tokio::select! {
            _ = output_end.changed() => {}
            _ = self.ended() => {}
        }
    }

    /// `None` if the actor is gone: the task is over.
    pub(super) async fn detach(
        &self,
        request: DetachRequest,
    ) -> Option<Result<Detached, JournalError>> {
        let (reply, answer) = oneshot::channel();
        self.inbox
            .send(Message::Detach { request, reply })
            .await
            .ok()?;
        answer.await.ok()
    }

    /// `None` if the actor is gone: the task is over.
    pub(super) async fn cancel(
        &self,
        request: CancelRequest,
    ) -> Option<Result<Cancelled, JournalError>> {
        let (reply, answer) = oneshot::channel();
        self.inbox
            .send(Message::Cancel { request, reply })
            .await
            .ok()?;
        answer.await.ok()
    }
}
