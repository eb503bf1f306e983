//! The actor of one live task: it owns the task's state, the connection to its shim and its inbox.
//!
//! ```text
//!   shim report ─┐
//!   inbox        ├─> Wake ──> Input ──> Life::step ──> Effects ──> journal, shim, child tasks
//!   timer        │
//!   clients     ─┘
//! ```
//!
//! The loop takes one [`Wake`], turns it into inputs of the state machine, and carries out the effects.
//! A shim's report is only a hint to read the task file. So the same code serves a task that was just
//! started, one that was taken over after a crash, and one whose shim has died.
//!
//! | file | `TaskActor` methods for |
//! | --- | --- |
//! | `launch` | the start of the leader |
//! | `inbox` | requests of clients |
//! | `effects` | inputs in, effects out |
//! | `recording`, `backlog` | events in the journal, those that it refuses, the Spawn reply |
//! | `shim_connection`, `orders` | the shim |
//! | `silent_shim` | a shim that does not answer |
//! | `records` | facts from the task file |
//! | `reconcile` | a task without a shim connection |
//! | `stop_others` | child tasks, and tasks to be replaced |
//! | `output`, `matching` | the output of the task, and the search for its patterns |
//! | `attempts` | the attempts of a task that is restarted on failure |
//! | `looks` | looks at whether the task is ready, or waits for input |
//! | `input` | writes to its input, the size of its terminal |
//! | `work` | the worker: reports, result, messages |
//! | `revive` | a panic of the actor |

mod attempts;
mod backlog;
mod effects;
mod inbox;
mod input;
mod launch;
mod looks;
mod matching;
mod orders;
mod output;
mod reconcile;
mod recording;
mod records;
mod revive;
mod shim_connection;
mod silent_shim;
mod stop_others;
mod work;

use std::{path::PathBuf, sync::Arc, time::Duration};

use tokio::{sync::oneshot, task::JoinSet};

pub(super) use inbox::Message;
pub(super) use launch::NewTask;
use launch::{Prepared, is_admitted_and_not_started};
use matching::{Matching, MatchingEvent};
pub(super) use records::cgroup_path;

use self::backlog::Backlog;
use super::{
    JobGuard, Shared,
    calls::input::Given,
    lifecycle::{Clients, EarlierWork, Input, Life, Timer},
    registry::handle::ActorChannels,
};
use crate::{
    crash,
    journal::{JournalError, WorkRecord},
    process::shim::{ShimProcess, ShimReport, ShimTerminalSize},
    task::{
        Event, Monotonic, SentSignal, Signal, SignalTarget, Survivor, Task, TerminalSize, Timestamp,
    },
};
use input::InputPort;
use looks::{Looked, Looks};
use reconcile::SweepDeadline;
use records::LeaderExitRecord;
use shim_connection::{ShimConnection, ShimEvent};
use silent_shim::Silence;
use work::Mailbox;

/// The longest single sleep, so that no sum of times overflows.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// The event that one iteration of the loop handles.
enum Wake {
    Shutdown,
    Shim(ShimEvent),
    TimerDue(Timer),
    /// The number of attached clients has changed.
    ClientsChanged,
    /// Clients and workers can connect from now on.
    ClientsAccepted,
    Message(Box<Message>),
    /// The shim does not report a start or an end.
    ShimSilent,
    ChildrenStopped,
    Admitted,
    StoppedWhileQueued,
    StoppedBetweenAttempts,
    /// A look at the task has a result.
    Looked(Looked),
    /// It is time to record again what the journal has refused.
    RetryRecording,
    Matching(MatchingEvent),
}

/// The sender on which the caller of Spawn is answered.
pub(super) type SpawnReply = oneshot::Sender<Result<Arc<Event>, JournalError>>;

pub(super) struct TaskActor {
    shared: Arc<Shared>,
    life: Life,
    channels: ActorChannels,
    shim: ShimConnection,
    backlog: Backlog,
    /// True if the task is admitted and the journal has refused the record.
    is_admission_refused: bool,
    silence: Silence,
    /// The task's cgroup, if it may have one.
    cgroup: Option<PathBuf>,
    /// Kept until the leader runs: another shim may have to start it.
    prepared: Option<Box<Prepared>>,
    /// The caller of Spawn, until it is answered.
    spawn_reply: Option<SpawnReply>,
    /// True if the task is to be launched again should no shim have begun with it: an earlier server
    /// has admitted it, or its shim does not answer.
    is_launch_uncertain: bool,
    /// False while the monotonic times in the task's facts may be of an earlier boot. They mean nothing
    /// in this one, so no timer is set then.
    is_of_this_boot: bool,
    /// False until clients can attach: the reattach window starts then.
    accepts_clients: bool,
    sweep_deadline: SweepDeadline,
    /// `None`: the task has no pattern to search for.
    matching: Option<Matching>,
    is_damage_logged: bool,
    /// The lowest limit on its output that the server has ordered.
    output_limit: Option<u64>,
    looks: Looks,
    /// `None`: the task has no input.
    input: Option<Box<InputPort>>,
    /// The record of the worker, if there was one.
    work: Option<Box<WorkRecord>>,
    /// Read when it is first needed.
    mailbox: Option<Box<Mailbox>>,
    /// The stops of child tasks that are under way.
    child_stops: JoinSet<()>,
    _job: JobGuard,
}

impl TaskActor {
    /// The actor of a task. `work` is the record of its worker, if an earlier server has one.
    pub(super) fn new(
        shared: Arc<Shared>,
        task: Task,
        work: Option<WorkRecord>,
        channels: ActorChannels,
    ) -> Self {
        let accepts_clients = *shared.accepts_clients.borrow();
        Self {
            _job: JobGuard::new(&shared),
            shared,
            is_of_this_boot: task.started.is_none() && task.stop.is_none(),
            matching: Matching::of(&task),
            input: InputPort::of(&task),
            life: Life::new(task, EarlierWork::of(work.as_ref()), Monotonic::now()),
            channels,
            shim: ShimConnection::NotLaunched,
            backlog: Backlog::default(),
            is_admission_refused: false,
            silence: Silence::new(),
            cgroup: None,
            prepared: None,
            spawn_reply: None,
            is_launch_uncertain: false,
            accepts_clients,
            sweep_deadline: SweepDeadline::NotStarted,
            is_damage_logged: false,
            output_limit: None,
            looks: Looks::default(),
            work: work.map(Box::new),
            mailbox: None,
            child_stops: JoinSet::new(),
        }
    }

    /// The process of the shim, if there may be one.
    fn shim_process(&self) -> Option<ShimProcess> {
        self.channels.signs.shim_process()
    }

    fn set_shim_process(&self, process: Option<ShimProcess>) {
        self.channels.signs.set_shim_process(process);
    }

    /// True if no event waits to be recorded.
    fn is_recorded(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Runs until the task is finished and that is recorded, or the server shuts down.
    ///
    /// The work of a wake is on the heap for as long as it takes: an actor sleeps most of its life, and
    /// there may be thousands.
    async fn run(&mut self) {
        while self.life.task.is_live() || !self.is_recorded() {
            let wake = self.next_wake().await;
            if matches!(wake, Wake::Shutdown) {
                return drop(Box::pin(self.record_backlog()).await);
            }
            Box::pin(self.handle(wake)).await;
        }
        Box::pin(self.finish()).await;
    }

    async fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Shim(event) => self.handle_shim(event).await,
            Wake::TimerDue(timer) => self.handle_timer(timer).await,
            Wake::ClientsChanged => self.update_clients().await,
            Wake::ClientsAccepted => self.accept_clients().await,
            Wake::Message(message) => self.handle_message(*message).await,
            Wake::ShimSilent => self.work_around_shim().await,
            // A forced stop may have started a second round.
            Wake::ChildrenStopped if self.child_stops.is_empty() => {
                self.apply(Input::ChildrenFinished).await;
            }
            Wake::Shutdown | Wake::ChildrenStopped => {}
            Wake::Admitted => self.start_admitted().await,
            Wake::StoppedWhileQueued => self.apply(Input::StoppedWhileQueued).await,
            Wake::StoppedBetweenAttempts => self.stop_between_attempts().await,
            Wake::Looked(Looked::Ready(probed)) => self.apply(Input::Probed(probed)).await,
            Wake::Looked(Looked::InputAwaited) => {
                self.follow_input().await;
                self.apply(Input::StdinAwaited).await;
            }
            Wake::RetryRecording => self.retry_recording().await,
            Wake::Matching(event) => self.handle_matching(event).await,
        }
    }

    /// Gives back what a finished task has used.
    async fn finish(&mut self) {
        crash::point("end.recorded");
        self.shared.registry.remove(&self.life.task.id);
        self.shared.output_budget.forget(&self.life.task.id);
        self.retire_shim().await;
        self.settle_output().await;
    }

    async fn next_wake(&mut self) -> Wake {
        if self.life.is_stopped_while_queued() {
            return Wake::StoppedWhileQueued;
        }
        if self.life.is_stopped_between_attempts() && !self.shim.is_unreachable() {
            return Wake::StoppedBetweenAttempts;
        }
        self.drop_unneeded();
        let timer = self.life.timer().filter(|_| self.is_of_this_boot);
        let awaits_shim = self.awaits_shim();
        // On the heap when they are waited for, which most tasks do not do for long.
        let clients_accepted = async { Box::pin(self.shared.clients_accepted()).await };
        let silent_until = self.silence.next_step;
        let shim_silent = async move { Box::pin(tokio::time::sleep_until(silent_until)).await };
        tokio::select! {
            biased;
            () = self.shared.shutdown_begun() => Wake::Shutdown,
            event = self.shim.next_event() => Wake::Shim(event),
            timer = due(timer) => Wake::TimerDue(timer),
            () = self.channels.signs.clients_changed.notified() => Wake::ClientsChanged,
            () = clients_accepted, if !self.accepts_clients => Wake::ClientsAccepted,
            Some(message) = self.channels.inbox.recv() => Wake::Message(message),
            () = shim_silent, if awaits_shim => Wake::ShimSilent,
            Some(_) = self.child_stops.join_next() => Wake::ChildrenStopped,
            () = admitted(&mut self.channels.admitted) => Wake::Admitted,
            looked = self.looks.next() => Wake::Looked(looked),
            () = self.backlog.retry_due() => Wake::RetryRecording,
            event = matching::next_event(&mut self.matching, &self.life) => Wake::Matching(event),
        }
    }

    async fn handle_shim(&mut self, event: ShimEvent) {
        match event {
            ShimEvent::Report(report) => {
                self.silence.is_broken();
                self.handle_report(report).await;
            }
            ShimEvent::Disconnected | ShimEvent::RetryDue => self.reconcile().await,
        }
    }

    async fn handle_report(&mut self, report: ShimReport) {
        match report {
            ShimReport::Hello { .. } | ShimReport::Started => {
                self.read_records(LeaderExitRecord::AwaitReport).await;
            }
            ShimReport::LeaderExited => self.read_records(LeaderExitRecord::Apply).await,
            ShimReport::TreeEnded { shim } => {
                self.give_back_shim(shim);
                self.read_records(LeaderExitRecord::Apply).await;
                // The record that the report announces is missing: reconcile finds out why.
                if !self.life.is_tree_gone() && !self.life.is_between_attempts() {
                    self.shim.set_unreachable();
                }
            }
            ShimReport::CannotStart { stage, errno } => self.start_failed(stage, errno).await,
            ShimReport::Signalled {
                number,
                processes,
                time_micros,
            } => {
                let sent = SentSignal {
                    signal: Signal(number),
                    at: Timestamp(time_micros),
                    target: SignalTarget::Processes(processes),
                };
                self.apply(Input::SignalSent(sent)).await;
            }
            ShimReport::Overdue => self.name_survivors().await,
            ShimReport::Storm => self.shared.make_haste(),
            // It has broken the silence of the shim, and there is nothing to read.
            ShimReport::RecordRefused => {}
            ShimReport::Output { .. } => {
                self.channels.signs.output.notify_waiters();
                self.search_output();
                self.apply(Input::OutputWritten).await;
            }
            ShimReport::OutputLimit => self.read_records(LeaderExitRecord::AwaitReport).await,
            ShimReport::Stored { bytes } => {
                self.shared.output_budget.set(&self.life.task.id, bytes);
            }
            ShimReport::Input {
                taken,
                room,
                state,
                size: ShimTerminalSize { columns, rows },
                is_relayed,
            } => {
                let given = Given {
                    bytes: taken,
                    room,
                    state,
                    size: Some(TerminalSize { columns, rows }),
                    is_relayed,
                };
                self.input_reported(given).await;
            }
            ShimReport::InputGiven => self.apply(Input::StdinGiven).await,
            ShimReport::Note { part, bytes } => self.read_note(part, bytes).await,
            ShimReport::Resized => self.resized(),
        }
    }

    async fn handle_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Deadline => self.apply(Input::DeadlineReached).await,
            Timer::Foreground => self.apply(Input::ForegroundTimedOut).await,
            // No client could attach yet; the window starts when clients can.
            Timer::Reattach if !self.accepts_clients => {
                self.apply(Input::Clients(Clients::Attached)).await;
            }
            Timer::Reattach => {
                // A client may have attached in this instant.
                self.update_clients().await;
                self.apply(Input::ClientDisconnected).await;
            }
            Timer::Restart => self.begin_next_attempt().await,
            Timer::Probe => self.apply(Input::ProbeDue).await,
            Timer::Ready => {
                self.search_before_not_ready().await;
                self.apply(Input::ReadyTimedOut).await;
            }
            Timer::InputLook => self.apply(self.input_look_due()).await,
            Timer::Silence => self.look_at_silence().await,
            // No worker could connect yet; the lease starts when workers can.
            Timer::Lease if !self.accepts_clients => self.apply(Input::WorkersAccepted).await,
            Timer::Lease => self.apply(Input::LeaseDue).await,
            Timer::Progress => self.apply(Input::ProgressDue).await,
            Timer::SoftGrace => {
                crash::point("cancel.soft-over");
                self.apply(Input::SoftGraceOver).await;
            }
            Timer::Grace => self.apply(Input::GraceOver).await,
            Timer::KillDeadline => self.name_survivors().await,
        }
    }

    async fn accept_clients(&mut self) {
        self.accepts_clients = true;
        self.apply(Input::WorkersAccepted).await;
        self.update_clients().await;
    }

    async fn update_clients(&mut self) {
        let clients = match self.channels.signs.attached_clients() {
            0 => Clients::None(Monotonic::now()),
            _ => Clients::Attached,
        };
        self.apply(Input::Clients(clients)).await;
    }

    /// Looks up the processes that have outlived the kill deadline. Without a shim, the sweep of
    /// `reconcile` names the survivors.
    async fn name_survivors(&mut self) {
        let survivors = self.processes_below_shim().await;
        if !survivors.is_empty() {
            tracing::error!(task = %self.life.task.id, ?survivors, "kill is overdue; still trying");
        }
        self.apply(Input::KillOverdue(survivors)).await;
    }

    async fn processes_below_shim(&self) -> Vec<Survivor> {
        match self.shim_process() {
            Some(shim) => shim.descendants().await,
            None => Vec::new(),
        }
    }
}

impl std::fmt::Debug for TaskActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskActor")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// Waits for admission; for ever where the task is not queued, or will never be admitted.
async fn admitted(notice: &mut Option<oneshot::Receiver<()>>) {
    if let Some(receiver) = notice {
        let admitted = receiver.await;
        *notice = None;
        if admitted.is_ok() {
            return;
        }
    }
    std::future::pending().await
}

async fn due(timer: Option<(Monotonic, Timer)>) -> Timer {
    let Some((due, timer)) = timer else {
        return std::future::pending().await;
    };
    loop {
        let left = due.since(Monotonic::now());
        if left.is_zero() {
            return timer;
        }
        tokio::time::sleep(left.min(LONGEST_SLEEP)).await;
    }
}
