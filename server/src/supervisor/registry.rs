//! The registry of live tasks: their handles, and the admission of new ones, under one lock.
//!
//! A task whose tree is empty has freed its admission before its end is recorded, so that a client
//! that sees the end can take the slot or the key.

pub(super) mod handle;
pub(super) mod owners;
mod sessions;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use super::{
    admission::{Admission, Claim, Decision, QueueState, Refused},
    registry::handle::{ActorChannels, Handle},
};
use crate::{
    config::Limits,
    process::tree::owner::KnownTask,
    task::{Authority, ExclusiveMode, Filter, QueueSettings, Queued, Task, TaskId},
};

#[derive(Debug)]
pub(super) struct Registry {
    live: Mutex<LiveTasks>,
}

#[derive(Debug)]
struct LiveTasks {
    handles: HashMap<TaskId, Handle>,
    admission: Admission,
    /// The queued tasks: each is notified once it is admitted.
    queued: HashMap<TaskId, oneshot::Sender<()>>,
}

/// The task that answers a Spawn.
#[derive(Debug)]
pub(super) enum Admitted {
    /// A new one. Its actor is to be started.
    New(Box<Task>, ActorChannels),
    /// An equal one that was there before.
    Existing(Handle),
}

/// Tasks that were admitted from the queue and have not been notified yet.
#[derive(Debug)]
#[must_use]
pub(super) struct AdmittedTasks(Vec<oneshot::Sender<()>>);

impl AdmittedTasks {
    pub(super) fn notify(self) {
        for task in self.0 {
            // A task without an actor frees its admission when it is removed.
            let _ = task.send(());
        }
    }
}

impl Registry {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            live: Mutex::new(LiveTasks {
                handles: HashMap::new(),
                admission: Admission::new(limits),
                queued: HashMap::new(),
            }),
        }
    }

    /// Admits or queues a new task, or finds the one that is taken for it. `make` runs under the lock, so
    /// that `seq` is the order of arrival.
    pub(super) fn admit(
        &self,
        authority: &Authority,
        make: impl FnOnce() -> Task,
    ) -> Result<Admitted, Refused> {
        let mut live = self.lock();
        let mut task = make();
        let claim = Claim::of(&task);
        live.check_key(authority, &task)?;
        if let Some(handle) = live.find_equal(&claim)? {
            return Ok(Admitted::Existing(handle));
        }
        let decision = live.admission.claim(claim)?;
        if decision == Decision::Queued {
            task.queued = Some(Queued { admitted: None });
        }
        let channels = live.insert(&Arc::new(task.clone()), decision);
        Ok(Admitted::New(Box::new(task), channels))
    }

    /// Takes over a task of an earlier server, whatever the limits are now. It admits no queued task:
    /// see [`Self::admit_all_possible`].
    pub(super) fn readmit(&self, task: &Arc<Task>) -> ActorChannels {
        let mut live = self.lock();
        let decision = match task.is_waiting() {
            true => Decision::Queued,
            false => Decision::Admitted,
        };
        // A task that was stopped while queued is never admitted.
        if !(task.is_waiting() && task.stop.is_some()) {
            live.admission.restore(Claim::of(task), decision);
        }
        live.insert(task, decision)
    }

    /// Admits every queued task that can be, after all tasks of an earlier server are back.
    pub(super) fn admit_all_possible(&self) {
        let mut live = self.lock();
        let admitted = live.admission.admit_all_possible();
        live.take_admitted(&admitted).notify();
    }

    /// Frees the admission of a task whose tree is empty. The tasks that are admitted because of it
    /// are to be notified after the end is recorded.
    pub(super) fn free_admission(&self, id: &TaskId) -> AdmittedTasks {
        let mut live = self.lock();
        live.queued.remove(id);
        live.free(id)
    }

    /// Removes a task that is finished, or whose creation could not be recorded.
    pub(super) fn remove(&self, id: &TaskId) {
        let mut live = self.lock();
        live.queued.remove(id);
        live.free(id).notify();
        live.handles.remove(id);
    }

    /// The tasks that must end before this one can replace them.
    pub(super) fn replaced_by(&self, task: &Task) -> Vec<Handle> {
        let live = self.lock();
        let replaced = live.admission.replaced_by(task);
        let handle = |id: &TaskId| live.handles.get(id).cloned();
        replaced.iter().filter_map(handle).collect()
    }

    /// Changes a queue's settings, and notifies the tasks that are admitted because of it.
    pub(super) fn configure_queue(&self, name: &str, settings: QueueSettings) -> QueueState {
        let mut live = self.lock();
        let admitted = live.admission.configure(name, settings);
        live.take_admitted(&admitted).notify();
        live.admission.queue(name)
    }

    pub(super) fn queue(&self, name: &str) -> QueueState {
        self.lock().admission.queue(name)
    }

    /// All queues, by name.
    pub(super) fn queues(&self) -> Vec<QueueState> {
        self.lock().admission.queues().collect()
    }

    pub(super) fn get(&self, id: &TaskId) -> Option<Handle> {
        self.lock().handles.get(id).cloned()
    }

    /// The number of admitted tasks.
    pub(super) fn running(&self) -> usize {
        self.lock().admission.running()
    }

    /// The live tasks that match, newest first.
    pub(super) fn matching(&self, filter: &Filter) -> Vec<Handle> {
        let matches = |handle: &&Handle| {
            let task = handle.task();
            task.is_live() && filter.matches(&task)
        };
        let live = self.lock();
        let mut found: Vec<Handle> = live.handles.values().filter(matches).cloned().collect();
        drop(live);
        found.sort_by_key(|handle| std::cmp::Reverse(handle.task().seq));
        found
    }

    /// The live tasks, by what their processes are recognised by.
    pub(super) fn known(&self) -> Vec<KnownTask> {
        let live = self.lock();
        let known = live.handles.values().map(|handle| {
            let task = handle.task();
            KnownTask {
                id: task.id.clone(),
                uid: task.uid,
                shim: handle.shim_process(),
            }
        });
        known.collect()
    }

    /// Nothing under the lock panics half-way through a change, so a poisoned lock is usable.
    fn lock(&self) -> MutexGuard<'_, LiveTasks> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveTasks {
    /// Refuses to replace, or to take for its own, a task on which the caller may not act.
    fn check_key(&self, authority: &Authority, task: &Task) -> Result<(), Refused> {
        let (Some(own), Some(exclusive)) = (authority.bound(), &task.spec.exclusive) else {
            return Ok(());
        };
        let affected = match exclusive.mode {
            ExclusiveMode::Replace => self.admission.replaced_by(task),
            ExclusiveMode::Ensure => self.admission.claimants(&exclusive.key),
            ExclusiveMode::Reject | ExclusiveMode::Queue => Vec::new(),
        };
        let is_foreign = |id: &TaskId| {
            let handle = self.handles.get(id);
            handle.is_none_or(|handle| !authority.acts_on(&handle.task()))
        };
        match affected.iter().any(is_foreign) {
            true => Err(Refused::KeyNotYours {
                key: exclusive.key.clone(),
                caller: own.clone(),
            }),
            false => Ok(()),
        }
    }

    fn find_equal(&self, claim: &Claim) -> Result<Option<Handle>, Refused> {
        let handle = |id: &TaskId| self.handles.get(id);
        let is_stopping = |id: &TaskId| handle(id).is_none_or(Handle::is_stopping);
        let equal = self.admission.find_equal(claim, is_stopping)?;
        Ok(equal.and_then(|id| handle(&id).cloned()))
    }

    fn free(&mut self, id: &TaskId) -> AdmittedTasks {
        let Some(handle) = self.handles.get(id) else {
            return AdmittedTasks(Vec::new());
        };
        let admitted = self.admission.free(handle.task().seq);
        self.take_admitted(&admitted)
    }

    fn take_admitted(&mut self, admitted: &[TaskId]) -> AdmittedTasks {
        let notices = admitted.iter().filter_map(|id| self.queued.remove(id));
        AdmittedTasks(notices.collect())
    }

    fn insert(&mut self, task: &Arc<Task>, decision: Decision) -> ActorChannels {
        let admitted = match decision {
            Decision::Admitted => None,
            Decision::Queued => {
                let (notice, admitted) = oneshot::channel();
                self.queued.insert(task.id.clone(), notice);
                Some(admitted)
            }
        };
        let (handle, channels) = Handle::new(task, admitted);
        self.handles.insert(task.id.clone(), handle);
        channels
    }
}
