//! A shim that does not answer in time: its task, or another process, may have stopped it or traces it.
//!
//! ```text
//!  start asked ── 250 ms ──> SIGCONT, again and again ── 2 s ──> the place of the task file is claimed:
//!                             no file yet: the shim is killed, and another one gets the task
//!                             a file: the shim has begun; it is continued, and waited for
//!  kill asked ──── 1 s ────> the server kills the shim's descendants itself and sends SIGCONT, until
//!                            the shim reports the end. If it stays silent, it is killed as well
//! ```
//!
//! The claim decides the race with a shim that continues after all: the creator of the task file starts
//! the leader. A killed shim leaves the task to [`TaskActor::reconcile`].

use std::time::Duration;

use tokio::time::Instant;

use super::TaskActor;
use crate::{
    process::containment,
    supervisor::lifecycle::{KILL_DEADLINE, StopOrder},
};

/// The time after which a shim that should start a leader is continued.
const START_WITHIN: Duration = Duration::from_millis(250);
/// The time after which a shim that has not begun is replaced. It doubles each time.
const REPLACE_AFTER: Duration = Duration::from_secs(2);
const LONGEST_REPLACE_AFTER: Duration = Duration::from_secs(60);
/// The time after which the server takes part in a kill.
const KILL_WITHIN: Duration = Duration::from_secs(1);
/// The interval of further steps.
const STEP: Duration = Duration::from_millis(250);
/// The silence after a kill order that ends a shim without living descendants. A shim that works reports
/// before that that the kill is overdue.
const END_AFTER: Duration = KILL_DEADLINE.saturating_add(Duration::from_secs(2));
/// The most walks over the tree in one step, while each finds a live process.
const WALKS: usize = 8;
/// The time that a killed shim has to end before the actor handles other events again.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The wait for a shim's answer.
#[derive(Debug)]
pub(super) struct Silence {
    /// The time of the order, or of the latest report after it.
    since: Instant,
    pub(super) next_step: Instant,
    replace_at: Instant,
    replace_after: Duration,
    is_kill_ordered: bool,
}

impl Silence {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            since: now,
            next_step: now + START_WITHIN,
            replace_at: now + REPLACE_AFTER,
            replace_after: REPLACE_AFTER,
            is_kill_ordered: false,
        }
    }

    /// Begins the wait for a start.
    pub(super) fn start_ordered(&mut self) {
        self.since = Instant::now();
        self.next_step = self.since + START_WITHIN;
        self.replace_at = self.since + self.replace_after;
    }

    /// Begins the wait for an end. A repeated order does not begin it again. A start that is to be
    /// stopped waits no longer.
    pub(super) fn kill_ordered(&mut self) {
        if std::mem::replace(&mut self.is_kill_ordered, true) {
            return;
        }
        let now = Instant::now();
        let step = now + KILL_WITHIN;
        self.next_step = match self.next_step > now {
            true => step.min(self.next_step),
            false => step,
        };
        (self.since, self.replace_at) = (now, now);
    }

    /// True once a kill was ordered.
    pub(super) fn has_kill_order(&self) -> bool {
        self.is_kill_ordered
    }

    /// The shim has reported something.
    pub(super) fn is_broken(&mut self) {
        self.since = Instant::now();
    }

    /// Returns true if it is time to replace a shim that has not begun, and schedules the next time.
    fn take_replacement(&mut self) -> bool {
        let now = Instant::now();
        let is_due = now >= self.replace_at;
        if is_due {
            self.replace_after = LONGEST_REPLACE_AFTER.min(2 * self.replace_after);
            self.replace_at = now + self.replace_after;
        }
        is_due
    }
}

impl TaskActor {
    /// True while the shim has an order to start or to kill.
    pub(super) fn awaits_shim(&self) -> bool {
        self.is_starting() || self.is_being_killed() || self.life.is_attempt_ordered()
    }

    fn is_being_killed(&self) -> bool {
        self.life.stop_order() == Some(StopOrder::Kill) && !self.life.is_tree_gone()
    }

    pub(super) fn is_starting(&self) -> bool {
        let task = &self.life.task;
        task.started.is_none() && !task.is_waiting() && !self.life.is_tree_gone()
    }

    /// Takes the next step against the silence of the shim.
    pub(super) async fn work_around_shim(&mut self) {
        if self.is_being_killed() {
            self.kill_without_shim().await;
        }
        if self.is_starting() {
            self.hasten_start().await;
        }
        if self.life.is_attempt_ordered() {
            self.resume_shim();
        }
        // A new launch has its own time.
        let next = Instant::now() + STEP;
        self.silence.next_step = next.max(self.silence.next_step);
    }

    /// Resumes the shim: a task may have stopped it, and a stopped shim takes no order.
    pub(super) fn resume_shim(&self) {
        if let Some(shim) = self.shim_process() {
            shim.resume();
        }
    }

    /// Kills what can be found, whatever state the shim is in. It reaps and reports once it runs.
    async fn kill_without_shim(&mut self) {
        if let Some(cgroup) = &self.cgroup {
            containment::kill(cgroup);
        }
        let Some(shim) = self.shim_process() else {
            return;
        };
        let mut alive = 0;
        for _ in 0..WALKS {
            alive = shim.kill_descendants().await;
            shim.resume();
            if alive == 0 {
                break;
            }
        }
        if alive == 0 && self.silence.since.elapsed() >= END_AFTER {
            let task = &self.life.task.id;
            tracing::warn!(%task, "the shim does not answer and its tree is dead; ending the shim");
            shim.end(END_WITHIN).await;
        }
    }

    /// Continues the shim; replaces it if it has not begun after a while.
    async fn hasten_start(&mut self) {
        self.resume_shim();
        if self.shim.is_connected() && self.silence.take_replacement() {
            self.is_launch_uncertain = self.prepared.is_some();
            self.reconcile().await;
        }
    }

    /// Ends a shim that found the place of its task file taken, or will; returns false if it lives: a
    /// process that is about to create the file may not be left alive when the claim is given up.
    pub(super) async fn end_late_shim(&mut self) -> bool {
        let Some(shim) = self.shim_process() else {
            return true;
        };
        let task = &self.life.task.id;
        tracing::warn!(%task, ?shim, "a shim has not begun with its task; replacing it");
        let has_ended = shim.end(END_WITHIN).await;
        if has_ended {
            self.set_shim_process(None);
        }
        has_ended
    }

    /// Kills a shim that can start nothing any more.
    pub(super) fn kill_late_shim(&mut self) {
        if let Some(shim) = self.shim_process() {
            self.set_shim_process(None);
            shim.kill();
        }
    }
}
