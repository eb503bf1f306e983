//! The attempts of a task that is restarted on failure. One shim makes them all: it has the leader's environment and
//! the state of the output in its memory, and keeps the task between two attempts.

use std::time::Duration;

use super::{TaskActor, matching::Matching, silent_shim::Silence};
use crate::{crash, process::shim::ShimOrder, supervisor::lifecycle::Input};

/// The time that a shim has to end, before the actor looks again.
const END_WITHIN: Duration = Duration::from_secs(1);

impl TaskActor {
    /// Forgets what concerns an attempt that is over.
    pub(super) async fn await_attempt(&mut self) {
        crash::point("restart.recorded");
        self.end_look().await;
        self.matching = Matching::of(&self.life.task);
        self.silence = Silence::new();
    }

    /// Begins the next attempt, which is due. Its intent is recorded first: without it, a server that dies now
    /// would not know of the attempt.
    pub(super) async fn begin_next_attempt(&mut self) {
        match self.is_recorded() {
            true => self.apply(Input::RestartDue).await,
            false => self.apply(Input::RestartPostponed).await,
        }
    }

    /// Orders the next attempt. A repeated order changes nothing.
    pub(super) async fn order_attempt(&mut self) {
        crash::point("restart.before-order");
        let attempt = self.life.task.attempt();
        self.shim.send(ShimOrder::Restart { attempt }).await;
        crash::point("restart.ordered");
        self.resume_shim();
        self.silence.start_ordered();
    }

    /// Ends a task that is stopped between two attempts. Its shim may have an order and be about to start a leader, so
    /// it is ended first; then the tree is proven empty as that of any task without a shim.
    pub(super) async fn stop_between_attempts(&mut self) {
        if self.shim_process().is_none() {
            self.shim.send(ShimOrder::GiveUp).await;
        }
        if self.end_kept_shim().await {
            self.reconcile().await;
        }
        // It is not proven yet, and looked at again later.
        if self.life.is_between_attempts() {
            self.shim.set_unreachable();
        }
    }

    /// Ends the shim of a task that makes no further attempt; returns whether it has ended. One that is left alive would
    /// wait for an order for ever, so the end of the task is recorded afterwards.
    pub(super) async fn end_kept_shim(&mut self) -> bool {
        if self.life.task.spec.restart.is_none() {
            return true;
        }
        let Some(shim) = self.shim_process() else {
            return true;
        };
        let has_ended = shim.end(END_WITHIN).await;
        if has_ended {
            self.set_shim_process(None);
        }
        has_ended
    }
}
