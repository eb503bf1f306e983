//! The live tasks, and how to reach their actors.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::{mpsc, oneshot, watch};

use super::{
    CancelRequest, DetachRequest,
    admission::{Admission, Claim, QueueState, Refused, Standing},
    requests::{Cancelled, Detached, Message},
};
use crate::{
    config::Limits,
    journal::JournalError,
    task::{Filter, Placement, QueueSettings, Queued, Task, TaskId},
};

/// Messages that an actor may have waiting: senders then wait their turn, which they can.
const INBOX: usize = 32;

/// A live task, from outside.
#[derive(Debug, Clone)]
pub struct Handle {
    inbox: mpsc::Sender<Message>,
    state: watch::Receiver<Arc<Task>>,
    output_end: watch::Receiver<u64>,
    clients: watch::Sender<usize>,
}

/// A hold on a task, until it is dropped.
#[derive(Debug)]
pub struct AttachedClient(watch::Sender<usize>);

impl Drop for AttachedClient {
    fn drop(&mut self) {
        self.0.send_modify(|clients| *clients -= 1);
    }
}

/// An actor's ends of its handle.
#[derive(Debug)]
pub(super) struct Ends {
    pub(super) inbox: mpsc::Receiver<Message>,
    pub(super) state: watch::Sender<Arc<Task>>,
    pub(super) output_end: watch::Sender<u64>,
    /// How many hold it.
    pub(super) clients: watch::Receiver<usize>,
    /// Hears when its turn has come, if it waits for that.
    pub(super) turn: Option<oneshot::Receiver<()>>,
}

/// Everything that is live.
#[derive(Debug)]
pub(super) struct Registry {
    places: Mutex<Places>,
}

/// The tasks, and who of them may begin: one whose tree is gone has given up what it held, though it is
/// still to be recorded as ended.
#[derive(Debug)]
struct Places {
    tasks: HashMap<TaskId, Handle>,
    admission: Admission,
    turns: HashMap<TaskId, oneshot::Sender<()>>,
}

/// Tasks whose turn has come, and who have not been told yet.
#[derive(Debug)]
#[must_use]
pub(super) struct Turns(Vec<oneshot::Sender<()>>);

impl Turns {
    pub(super) fn tell(self) {
        for turn in self.0 {
            // One that is gone gives up what it was given when it is removed.
            let _ = turn.send(());
        }
    }
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            places: Mutex::new(Places {
                tasks: HashMap::new(),
                admission: Admission::new(limits),
                turns: HashMap::new(),
            }),
        }
    }

    /// Takes a place for a new task, or one among those who wait. The task is made here, so that its
    /// number says who came first.
    pub(super) fn admit(&self, make: impl FnOnce() -> Task) -> Result<(Task, Ends), Refused> {
        let mut places = self.lock();
        let mut task = make();
        let standing = places.admission.claim(Claim::of(&task))?;
        if standing == Standing::Waits {
            task.queued = Some(Queued { admitted: None });
        }
        let ends = places.insert(&Arc::new(task.clone()), standing);
        Ok((task, ends))
    }

    /// Takes back a task of an earlier server, whatever the limits are now. Nobody begins by that: see
    /// [`Self::settle`].
    pub(super) fn readmit(&self, task: &Arc<Task>) -> Ends {
        let mut places = self.lock();
        let standing = match task.is_waiting() {
            true => Standing::Waits,
            false => Standing::Begins,
        };
        // One that is being stopped before its turn has come gets none.
        if !(task.is_waiting() && task.stop.is_some()) {
            places.admission.restore(Claim::of(task), standing);
        }
        places.insert(task, standing)
    }

    /// Everything that was there is back: whose turn has come begins.
    pub(super) fn settle(&self) {
        let mut places = self.lock();
        let begun = places.admission.settle();
        places.turns(begun).tell();
    }

    /// Frees what a task held, before it is told that it is over; who gets it is to be told after that.
    pub(super) fn vacate(&self, id: &TaskId) -> Turns {
        let mut places = self.lock();
        places.turns.remove(id);
        places.free(id)
    }

    /// Forgets a task that is over, or was never born.
    pub(super) fn remove(&self, id: &TaskId) {
        let mut places = self.lock();
        places.turns.remove(id);
        places.free(id).tell();
        places.tasks.remove(id);
    }

    /// Whom this task, which is to replace another, has to see gone first.
    pub(super) fn rivals(&self, task: &Task) -> Vec<Handle> {
        let places = self.lock();
        let rivals = places.admission.rivals(task);
        let handle = |id: &TaskId| places.tasks.get(id).cloned();
        rivals.iter().filter_map(handle).collect()
    }

    /// Sets a queue; whose turn has come by that begins.
    pub(super) fn configure(&self, name: &str, settings: QueueSettings) -> QueueState {
        let mut places = self.lock();
        let begun = places.admission.configure(name, settings);
        places.turns(begun).tell();
        places.admission.queue(name)
    }

    pub(super) fn queue(&self, name: &str) -> QueueState {
        self.lock().admission.queue(name)
    }

    /// By name.
    pub(super) fn queues(&self) -> Vec<QueueState> {
        self.lock().admission.queues().collect()
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Handle> {
        self.lock().tasks.get(id).cloned()
    }

    /// How many have begun and are not over.
    pub(super) fn running(&self) -> usize {
        self.lock().admission.running()
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
    fn free(&mut self, id: &TaskId) -> Turns {
        let seq = self.tasks.get(id).map(|handle| handle.state.borrow().seq);
        let begun = seq.map(|seq| self.admission.free(seq));
        self.turns(begun.unwrap_or_default())
    }

    fn turns(&mut self, begun: Vec<TaskId>) -> Turns {
        let turns = begun.iter().filter_map(|id| self.turns.remove(id));
        Turns(turns.collect())
    }

    fn insert(&mut self, task: &Arc<Task>, standing: Standing) -> Ends {
        let turn = match standing {
            Standing::Begins => None,
            Standing::Waits => {
                let (turn, turn_end) = oneshot::channel();
                self.turns.insert(task.id.clone(), turn);
                Some(turn_end)
            }
        };
        let (inbox, inbox_end) = mpsc::channel(INBOX);
        let (state_end, state) = watch::channel(Arc::clone(task));
        let (output_end_end, output_end) = watch::channel(0);
        let (clients, clients_end) = watch::channel(0);
        self.tasks.insert(
            task.id.clone(),
            Handle {
                inbox,
                state,
                output_end,
                clients,
            },
        );
        Ends {
            inbox: inbox_end,
            state: state_end,
            output_end: output_end_end,
            clients: clients_end,
            turn,
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
    pub fn attach(&self) -> AttachedClient {
        self.clients.send_modify(|clients| *clients += 1);
        AttachedClient(self.clients.clone())
    }

    /// Waits until the task holds nobody; `None` if the server lets go of it first.
    pub async fn out_of_foreground(&self) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let task = state
            .wait_for(|task| task.is_out_of_foreground())
            .await
            .ok()?;
        Some(Arc::clone(&task))
    }

    /// Waits until whoever attached to it when it was there is held no more; `None` if the server lets go
    /// of it first.
    pub async fn attach_ended(&self, from: Placement) -> Option<Arc<Task>> {
        let mut state = self.state.clone();
        let settled = |task: &Arc<Task>| task.attach_end(from).is_some();
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
