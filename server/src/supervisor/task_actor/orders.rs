//! Orders to the shim, and the end of its work for this task.

use super::{
    TaskActor,
    shim_connection::{ORDER_WITHIN, ShimConnection},
};
use crate::{
    crash,
    process::{
        containment,
        shim::{AfterTask, ShimLink, ShimOrder},
        tree::sweep::SearchedMarks,
    },
    supervisor::lifecycle::{KILL_DEADLINE, StopOrder},
    task::{Placement, Signal},
};

impl TaskActor {
    pub(super) async fn signal(&mut self, Signal(number): Signal) {
        crash::point("cancel.before-signal");
        self.shim.send(ShimOrder::Signal { number }).await;
        crash::point("cancel.signal-ordered");
        self.resume_shim();
    }

    pub(super) async fn kill(&mut self) {
        let within_millis = KILL_DEADLINE.as_millis() as u64;
        crash::point("cancel.before-kill");
        // Before the shim, which has to be scheduled first, among the processes that it is to kill.
        if let Some(cgroup) = &self.cgroup {
            containment::kill(cgroup);
        }
        self.shim.send(ShimOrder::Kill { within_millis }).await;
        crash::point("cancel.kill-ordered");
        self.look_ahead();
        self.resume_shim();
        self.silence.kill_ordered();
    }

    /// Prepares the search that follows the end of the tree. In a fork storm that is of no use.
    fn look_ahead(&self) {
        if self.life.task.stop.is_some() && !self.shared.haste.is_made() {
            let marks = match &self.cgroup {
                Some(_) => SearchedMarks::LimitTag,
                None => SearchedMarks::Both,
            };
            self.shared.sweeper.look_ahead(marks);
        }
    }

    /// Moves the output of a task that left the foreground to disk.
    pub(super) async fn spill(&mut self) {
        crash::point("detach.before-spill");
        self.shim.send(ShimOrder::Spill).await;
        crash::point("detach.spill-ordered");
    }

    pub(super) async fn abandon_orphans(&mut self) {
        self.shim.send(ShimOrder::Abandon).await;
    }

    /// Asks for a report of the next output beyond an offset.
    pub(super) async fn follow_output(&mut self, beyond: u64) {
        self.shim.send(ShimOrder::Follow { beyond }).await;
    }

    /// Keeps the output within so many bytes of disk, from now on.
    pub(super) async fn limit_output(&mut self, bytes: u64) {
        let bytes = self.output_limit.map_or(bytes, |limit| limit.min(bytes));
        self.output_limit = Some(bytes);
        self.shim.send(ShimOrder::LimitOutput { bytes }).await;
    }

    /// Takes a new connection. Readers look at the output again, and repeat their waits.
    pub(super) async fn use_link(&mut self, link: ShimLink) {
        self.shim = ShimConnection::Connected(link);
        self.channels.signs.output.notify_waiters();
        self.search_output();
        self.renew_input().await;
    }

    /// Sends the orders again that an earlier connection or server may not have delivered.
    pub(super) async fn resend_orders(&mut self) {
        match self.life.stop_order() {
            Some(StopOrder::Signal(signal)) => self.signal(signal).await,
            Some(StopOrder::Kill) => self.kill().await,
            Some(StopOrder::Abandon) => self.abandon_orphans().await,
            None => {}
        }
        if self.life.is_attempt_ordered() {
            self.order_attempt().await;
        }
        let task = &self.life.task;
        if task.spec.foreground.is_some() && task.placement() == Placement::Background {
            self.spill().await;
        }
        if self.life.task.stale.is_some() || self.life.task.needs_input.is_some() {
            self.follow_output(self.life.task.output_bytes).await;
        }
        if self.life.task.needs_input.is_some() {
            self.follow_input().await;
        }
        if let Some(bytes) = self.output_limit {
            self.limit_output(bytes).await;
        }
    }

    /// Gives a shim that waits for another task to the pool. A shim that ends closes the connection. One
    /// with a kill order is dropped: the server may have killed the tree before the order arrived.
    pub(super) fn give_back_shim(&mut self, shim: AfterTask) {
        match shim {
            AfterTask::Waits => {
                self.set_shim_process(None);
                let link = self.shim.close();
                if let Some(link) = link.filter(|_| !self.silence.has_kill_order()) {
                    self.shared.parts.shims.give_back(link);
                }
            }
            AfterTask::Ends | AfterTask::Keeps => {}
        }
    }

    /// Gives the shim of a finished task to the pool, once it says that it waits for another task.
    pub(super) async fn retire_shim(&mut self) {
        let link = self.shim.close();
        if let Some(link) = link.filter(|_| !self.silence.has_kill_order()) {
            let retired = self.shared.parts.shims.retire(link);
            // A shim that says nothing is dropped.
            let _ = tokio::time::timeout(ORDER_WITHIN, retired).await;
        }
    }
}
