//! Other tasks that this one has to stop: its children, and the tasks that it replaces.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Message, TaskActor};
use crate::{
    journal::JournalError,
    supervisor::{
        CancelMode, CancelRequest, Cascade, Handle, JobGuard, Shared, registry::handle::Standing,
    },
    task::{Actor, Filter, Stop, StopCause, StopMode, TaskId},
};

impl TaskActor {
    /// True if the trees of all child tasks are gone, recorded or not.
    pub(super) fn are_children_stopped(&self) -> bool {
        let live = self
            .shared
            .registry
            .matching(&children_of(&self.life.task.id));
        live.iter().all(Handle::is_stopped_unrecorded)
    }

    /// The reason why the end of a child task that is being stopped is not recorded, if there is one.
    pub(super) fn child_refusal(&self) -> Option<Arc<JournalError>> {
        if self.child_stops.is_empty() {
            return None;
        }
        let children = children_of(&self.life.task.id);
        let live = self.shared.registry.matching(&children);
        live.iter().find_map(Handle::refusal)
    }

    /// Stops the child tasks as this one is being stopped; the result arrives in `child_stops`.
    pub(super) fn stop_children(&mut self) {
        let Some(stop) = &self.life.task.stop else {
            return;
        };
        let request = CancelRequest {
            cause: StopCause::Cancel,
            mode: match stop.mode {
                StopMode::Graceful(_) => None,
                StopMode::Force => Some(CancelMode::Force),
            },
            actor: stop.actor.clone(),
            reason: stop.reason.clone(),
            cascade: Cascade::Children,
        };
        let (shared, id) = (Arc::clone(&self.shared), self.life.task.id.clone());
        self.child_stops
            .spawn(stop_children_of(shared, id, request));
    }

    /// Stops the tasks that this one replaces, after it is recorded that it will.
    pub(super) fn stop_replaced_tasks(&self) {
        let request = CancelRequest {
            cause: StopCause::Replaced,
            mode: None,
            actor: Actor::heeler(),
            reason: Some(format!("replaced by {}", self.life.task.id)),
            cascade: Cascade::Alone,
        };
        for replaced in self.shared.registry.replaced_by(&self.life.task) {
            let (job, request) = (JobGuard::new(&self.shared), request.clone());
            tokio::spawn(async move {
                let _job = job;
                replaced.cancel(request).await
            });
        }
    }
}

/// Stops the children of a task, until it has none.
async fn stop_children_of(shared: Arc<Shared>, parent: TaskId, request: CancelRequest) {
    let children = children_of(&parent);
    loop {
        let live = shared.registry.matching(&children);
        if live.is_empty() || shared.is_shutting_down() {
            return;
        }
        let mut stops = JoinSet::new();
        for child in live {
            let (shared, parent) = (Arc::clone(&shared), parent.clone());
            stops.spawn(stop_child(shared, parent, child, request.clone()));
        }
        while stops.join_next().await.is_some() {}
        // A task whose creation could not be recorded leaves the registry without an end.
        tokio::task::yield_now().await;
    }
}

fn children_of(parent: &TaskId) -> Filter {
    Filter {
        parent: Some(parent.clone()),
        ..Filter::default()
    }
}

/// Stops one child, and reports to its parent if the kill is overdue, or the end is not recorded.
async fn stop_child(shared: Arc<Shared>, parent: TaskId, child: Handle, request: CancelRequest) {
    // Its actor stops it also if that cannot be recorded.
    let _ = child.cancel(request).await;
    let Some(Standing { task, unrecorded }) = child.stopped().await else {
        return;
    };
    if let Some(parent) = shared.registry.get(&parent) {
        if task.has_survivors() {
            let survivors = task.stop.iter().flat_map(Stop::survivors);
            let survivors = survivors.cloned().collect();
            parent.send(Message::ChildKillOverdue(survivors)).await;
        }
        if let Some(error) = unrecorded {
            parent.send(Message::ChildUnrecorded(error)).await;
        }
    }
    // Its end is in the journal before that of its parent.
    child.finished().await;
}
