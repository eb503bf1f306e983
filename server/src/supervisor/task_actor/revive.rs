//! An actor that panics. Its task is taken back from the journal, as a restart of the server would.
//!
//! ```text
//!  begin, take_over ──> run ──> the task is finished
//!                        │ panic
//!                        └──> state from the journal ──> take_over ──> run ...
//! ```
//!
//! The actor itself, its channels and its place in the registry outlive the panic; its state does not.
//! Requests that wait in the inbox are served afterwards. The request in progress loses its reply, which
//! its caller notices: see `Handle::ask`.

use std::{
    any::Any,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use tokio::{sync::mpsc, task::JoinSet};

use super::{
    TaskActor,
    input::InputPort,
    launch::{Begun, NewTask},
    looks::Looks,
    matching::Matching,
    reconcile::SweepDeadline,
    silent_shim::Silence,
};
use crate::{
    journal::WorkRecord,
    supervisor::lifecycle::{EarlierWork, Life},
    task::{Monotonic, Task},
};

/// The delay before the first new attempt, and the longest one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The pause before the journal is read again.
const READ_RETRY: Duration = Duration::from_millis(250);

type Panic = Box<dyn Any + Send>;

impl TaskActor {
    /// Runs a new task from its Spawn to its end.
    pub(in crate::supervisor) async fn run_new(mut self: Box<Self>, new: Box<NewTask>) {
        let begun = {
            // Its place is freed with this block, before the actor runs.
            let new = new;
            caught(Box::pin(self.begin(*new))).await
        };
        let done = match begun {
            Ok(Begun::Recorded) => caught(Box::pin(self.run())).await,
            Ok(Begun::Refused) => Ok(()),
            Err(panic) => Err(panic),
        };
        if let Err(panic) = done {
            Box::pin(self.run_on_after(panic)).await;
        }
    }

    /// Takes over a task of an earlier server, reports whether it is live, and runs it to its end.
    pub(in crate::supervisor) async fn run_found(
        mut self: Box<Self>,
        reconciled: mpsc::Sender<bool>,
    ) {
        let done = caught(Box::pin(self.take_over())).await;
        // The receiver gives up on late tasks, and learns that the others are not recorded.
        if self.is_recorded() {
            let _ = reconciled.send(self.life.task.is_live()).await;
        }
        drop(reconciled);
        let done = match done {
            Ok(()) => caught(Box::pin(self.run())).await,
            Err(panic) => Err(panic),
        };
        if let Err(panic) = done {
            Box::pin(self.run_on_after(panic)).await;
        }
    }

    /// Runs on after each panic, until the task is finished or the server shuts down.
    async fn run_on_after(&mut self, mut panic: Panic) {
        let mut pause = FIRST_PAUSE;
        loop {
            let (task, text) = (&self.life.task.id, text(&*panic));
            tracing::error!(%task, panic = text, "the task's actor failed; taking the task back");
            tokio::time::sleep(pause).await;
            if self.shared.is_shutting_down() {
                return;
            }
            pause = (2 * pause).min(LONGEST_PAUSE);
            match caught(Box::pin(self.run_again())).await {
                Ok(()) => return,
                Err(again) => panic = again,
            }
        }
    }

    async fn run_again(&mut self) {
        let Some(task) = self.recorded_task().await else {
            // A creation that was not recorded. The dropped reply says so to the caller.
            self.shared.registry.remove(&self.life.task.id);
            self.spawn_reply = None;
            return;
        };
        self.channels.state.send_replace(Arc::clone(&task));
        // Events that the journal has refused are ahead of it, and still to be recorded.
        let task = self.backlog.latest().unwrap_or(task);
        let work = self.recorded_work().await;
        self.forget(&task, work);
        self.reply_from_journal().await;
        if self.life.task.is_live() {
            self.take_back().await;
        }
        self.run().await;
    }

    /// Takes the task over. What was about to be launched is launched, if no shim has begun with it.
    async fn take_back(&mut self) {
        let is_admitted = self.life.task.is_waiting() && self.channels.admitted.is_none();
        self.take_over().await;
        if is_admitted {
            self.start_admitted().await;
        }
    }

    /// The task as recorded; `None` if it is not.
    async fn recorded_task(&self) -> Option<Arc<Task>> {
        loop {
            match self.shared.parts.journal.task(&self.life.task.id).await {
                Ok(task) => return task,
                Err(error) => {
                    let task = &self.life.task.id;
                    tracing::error!(%task, %error, "cannot read the task; will retry");
                }
            }
            tokio::time::sleep(READ_RETRY).await;
            if self.shared.is_shutting_down() {
                return None;
            }
        }
    }

    /// Returns to a state, with nothing known about the shim.
    fn forget(&mut self, task: &Arc<Task>, work: Option<WorkRecord>) {
        self.is_of_this_boot = task.started.is_none() && task.stop.is_none();
        let earlier = EarlierWork::of(work.as_ref());
        self.life = Life::new(Task::clone(task), earlier, Monotonic::now());
        (self.work, self.mailbox) = (work.map(Box::new), None);
        self.matching = Matching::of(task);
        self.input = InputPort::of(task);
        self.shim.forget();
        self.is_admission_refused = false;
        self.silence = Silence::new();
        self.sweep_deadline = SweepDeadline::NotStarted;
        self.looks = Looks::default();
        self.child_stops = JoinSet::new();
    }

    /// Answers the caller of Spawn, if the event that answers it was recorded before the panic.
    async fn reply_from_journal(&mut self) {
        if let Some(reply) = self.spawn_reply.take() {
            let journal = &self.shared.parts.journal;
            match journal.first_answer(&self.life.task.id).await.transpose() {
                Some(answer) => drop(reply.send(answer)),
                None => self.spawn_reply = Some(reply),
            }
        }
    }
}

/// Runs a future; an `Err` is the panic that ended it. The future is on the heap, so that an actor keeps the
/// memory of no step but the one that it is in.
async fn caught<T>(mut future: Pin<Box<impl Future<Output = T>>>) -> Result<T, Panic> {
    poll_fn(|context| {
        // The actor's state is read anew after a panic, so a half-made change is not seen.
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    })
    .await
}

fn text(panic: &(dyn Any + Send)) -> &str {
    let owned = panic.downcast_ref::<String>().map(String::as_str);
    owned
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("of an unknown kind")
}
