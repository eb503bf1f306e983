//! Other tasks that this one has to stop: its children, and the tasks that it replaces.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Message, TaskActor};
use crate::{
    supervisor::{CancelMode, CancelRequest, Cascade, Handle, JobGuard, STORAGE_RETRY, Shared},
    task::{Actor, Filter, Stop, StopCause, StopMode, TaskId},
};

impl TaskActor {
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
            tokio::spawn(async move { cancel_until_recorded(&job.0, &replaced, request).await });
        }
    }
}

/// Stops the children of a task, until it has none.
async fn stop_children_of(shared: Arc<Shared>, parent: TaskId, request: CancelRequest) {
    let children = Filter {
        parent: Some(parent.clone()),
        ..Filter::default()
    };
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

/// Stops one child, and reports to its parent if the kill is overdue.
async fn stop_child(shared: Arc<Shared>, parent: TaskId, child: Handle, request: CancelRequest) {
    cancel_until_recorded(&shared, &child, request).await;
    let Some(task) = child.finished_or_kill_overdue().await else {
        return;
    };
    if task.has_survivors() {
        if let Some(parent) = shared.registry.get(&parent) {
            let survivors = task
                .stop
                .iter()
                .flat_map(Stop::survivors)
                .cloned()
                .collect();
            parent.send(Message::ChildKillOverdue(survivors)).await;
        }
        child.finished().await;
    }
}

/// Cancels a task. Retries until the stop is recorded, or the server shuts down.
async fn cancel_until_recorded(shared: &Shared, task: &Handle, request: CancelRequest) {
    while let Some(Err(error)) = task.cancel(request.clone()).await {
        if shared.is_shutting_down() {
            return;
        }
        tracing::error!(task = %task.task().id, %error, "cannot record a stop; will retry");
        tokio::time::sleep(STORAGE_RETRY).await;
    }
}
