//! What an actor has its shim do, and how the two part.
//!
//! An order that cannot be sent is no loss: what is to be done follows from the task's facts, and is
//! ordered again on the next link.

use std::time::Duration;

use tokio::task::spawn_blocking;

use super::{
    actor::{CALL_AGAIN, KILL_WITHIN, TaskActor},
    observe::cgroup_path,
};
use crate::{
    crash,
    process::{
        containment,
        shim::{AfterTask, ShimLink, ShimOrder},
        task_file::Identity,
        tree,
    },
    task::Signal,
};

/// How long a shim may take to make room for an order, or to say what it does next.
const ORDER_WITHIN: Duration = Duration::from_secs(1);

impl TaskActor {
    pub(super) async fn signal(&mut self, Signal(number): Signal) {
        crash::point("cancel.before-signal");
        self.order(ShimOrder::Signal { number }).await;
        crash::point("cancel.signal-ordered");
    }

    pub(super) async fn kill(&mut self) {
        let within_millis = KILL_WITHIN.as_millis() as u64;
        crash::point("cancel.before-kill");
        self.order(ShimOrder::Kill { within_millis }).await;
        crash::point("cancel.kill-ordered");
        let identity = self.identity();
        if let Some(cgroup) = identity.and_then(|identity| cgroup_path(&identity.cgroup)) {
            containment::kill(&cgroup);
        }
        self.rouse_shim();
    }

    /// It is in the background now: its output is to be on disk.
    pub(super) async fn spill(&mut self) {
        crash::point("detach.before-spill");
        self.order(ShimOrder::Spill).await;
        crash::point("detach.spill-ordered");
    }

    /// The task is over: in memory it keeps no more room than its output takes. What was detached has that
    /// on disk, also where its shim did not live to see to it.
    pub(super) async fn settle_output(&self) {
        if self.life.task.spec.rules.foreground.is_none() {
            return;
        }
        self.shared.parts.task_dir.settle_memory(&self.life.task.id);
        if self.life.task.detached.is_none() {
            return;
        }
        let (task_dir, id) = (
            self.shared.parts.task_dir.clone(),
            self.life.task.id.clone(),
        );
        let spilled = spawn_blocking(move || task_dir.spill(&id)).await;
        if let Ok(Err(error)) = spilled {
            tracing::warn!(task = %self.life.task.id, %error, "its output stays in memory");
        }
    }

    /// Its tree is no longer its own.
    pub(super) async fn abandon_orphans(&mut self) {
        self.order(ShimOrder::Abandon).await;
    }

    /// To hear of the next output: of a task that is stale.
    pub(super) async fn listen(&mut self) {
        let beyond = self.life.task.output_bytes;
        self.order(ShimOrder::Follow { beyond }).await;
    }

    /// A task may have stopped its own shim, which then says nothing and hears no order.
    pub(super) fn rouse_shim(&self) {
        if let Some(identity) = self.identity() {
            tree::continue_stopped(identity.shim_pid as i32, identity.shim_start_ticks);
        }
    }

    fn identity(&self) -> Option<Identity> {
        self.records().ok()?.identity.whole()
    }

    /// Another task may have the shim, if it waits for one. One that ends says so by its end.
    pub(super) fn part_with_shim(&mut self, shim: AfterTask) {
        match shim {
            AfterTask::Waits => {
                if let Some(link) = self.link.take() {
                    self.shared.parts.shims.give_back(link);
                }
            }
            AfterTask::Ends => {}
        }
    }

    /// The task is over: its shim says whether it takes another.
    pub(super) async fn retire_shim(&mut self) {
        if let Some(link) = self.link.take() {
            let retired = self.shared.parts.shims.retire(link);
            // One that does not say what it does next will not be missed.
            let _ = tokio::time::timeout(ORDER_WITHIN, retired).await;
        }
    }

    /// A shim that cannot be told something is called anew, and then told again.
    pub(super) async fn order(&mut self, order: ShimOrder) {
        let Some(link) = &mut self.link else { return };
        let sent = tokio::time::timeout(ORDER_WITHIN, link.send(order)).await;
        if !matches!(sent, Ok(Ok(()))) {
            self.link = None;
            self.unreachable = true;
        }
    }

    /// AfterTask a new link: readers look again, and say again what they wait for.
    pub(super) fn reached(&mut self, link: ShimLink) {
        self.link = Some(link);
        self.call_again = CALL_AGAIN;
        self.ends.output_end.send_modify(|_| {});
    }
}
