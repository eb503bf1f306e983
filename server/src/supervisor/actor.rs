//! One task's owner: it hears reports, requests and the clock, asks [`Life`] what to do, and does it.
//!
//! The loop selects one thing, turns it into inputs, and carries out the effects. A shim's report is
//! only a hint to look into the task file; so the same code serves a task that was just started, one
//! that was taken back after a crash, and one whose shim has died.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::oneshot,
    task::{JoinSet, spawn_blocking},
};

use super::{
    CancelRequest, Cascade, Presence, Shared,
    lifecycle::{Clients, Effect, Input, Life, StopOrder, Timer},
    observe::LeaderExits,
    registry::Ends,
    requests::Message,
};
use crate::{
    crash,
    journal::JournalError,
    process::{
        shim::{ShimLink, ShimReport},
        tree,
    },
    task::{Event, Filter, SentSignal, Signal, StopCause, Survivor, Task, Timestamp},
};

/// How long a kill may take before the survivors are named.
pub(super) const KILL_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait before a fact that could not be recorded is tried again.
pub(super) const STORAGE_RETRY: Duration = Duration::from_millis(250);
/// How long to wait before a shim that lives and does not answer is called again: at first, and in
/// the end.
pub(super) const CALL_AGAIN: Duration = Duration::from_millis(10);
const CALL_SELDOM: Duration = Duration::from_secs(1);
/// How long a start or a kill may take before the shim is told to go on, in case that somebody has
/// stopped it.
const ROUSE_EVERY: Duration = Duration::from_secs(1);
/// The clock is asked again at least this often, so that no sum of times overflows.
const LONGEST_SLEEP: Duration = Duration::from_secs(24 * 3600);

/// What one turn of the loop is about.
enum Turn {
    Leave,
    Report(Option<ShimReport>),
    Asked(Message),
    Due(Timer),
    /// Somebody has come to hold it, or has left; or only now somebody can.
    Clients,
    CallAgain,
    /// A start, or a kill, takes long.
    Rouse,
    ChildrenEnded,
    /// It may begin.
    Admitted,
    /// It was stopped before it could.
    Forgone,
}

/// How long somebody has outlived every attempt to kill them.
#[derive(Debug, Clone, Copy)]
pub(super) enum Patience {
    /// Nobody has.
    Whole,
    /// Since then.
    Since(Instant),
    /// Too long, and that was told.
    Over,
}

/// The owner of one live task.
pub(super) struct TaskActor {
    pub(super) shared: Arc<Shared>,
    pub(super) life: Life,
    /// Whether somebody could come to hold the task since it was here.
    served: bool,
    pub(super) link: Option<ShimLink>,
    /// The shim lives, and could not be called.
    pub(super) unreachable: bool,
    pub(super) call_again: Duration,
    /// When that is next tried.
    call_at: Option<tokio::time::Instant>,
    pub(super) shim_pid: Option<u32>,
    /// How long a sweep for the tree has gone on.
    pub(super) patience: Patience,
    /// Whether it was said that records cannot be read.
    pub(super) damage_told: bool,
    /// An earlier server told it to begin, and may not have come to it.
    pub(super) unlaunched: bool,
    /// Whoever waits to hear that the task runs.
    pub(super) newborn: Option<oneshot::Sender<Result<Arc<Event>, JournalError>>>,
    pub(super) ends: Ends,
    /// The stopping of the tasks that it spawned, while that goes on.
    children: JoinSet<()>,
    _presence: Presence,
}

impl TaskActor {
    pub(super) fn new(shared: Arc<Shared>, task: Task, ends: Ends) -> Self {
        let served = *shared.serving.borrow();
        Self {
            _presence: Presence::of(&shared),
            served,
            shared,
            life: Life::new(task, Timestamp::now()),
            link: None,
            unreachable: false,
            call_again: CALL_AGAIN,
            call_at: None,
            shim_pid: None,
            patience: Patience::Whole,
            damage_told: false,
            unlaunched: false,
            newborn: None,
            ends,
            children: JoinSet::new(),
        }
    }

    /// Until the task is over, or the server leaves.
    pub(super) async fn run(mut self) {
        while self.life.task.is_live() {
            match self.next_turn().await {
                Turn::Leave => return,
                Turn::Report(report) => self.heard(report).await,
                Turn::Asked(message) => self.asked(message).await,
                Turn::Due(timer) => self.due(timer).await,
                Turn::Clients => self.count_clients().await,
                Turn::CallAgain => {
                    self.call_again = (self.call_again * 2).min(CALL_SELDOM);
                    self.call_at = None;
                    self.shim_gone().await;
                }
                Turn::Rouse => self.rouse_shim(),
                // A more urgent stop may have begun another round of theirs.
                Turn::ChildrenEnded if self.children.is_empty() => {
                    self.learn(Input::ChildrenEnded).await;
                }
                Turn::ChildrenEnded => {}
                Turn::Admitted => self.take_turn().await,
                Turn::Forgone => self.learn(Input::Forgone).await,
            }
        }
        crash::point("end.recorded");
        self.shared.registry.remove(&self.life.task.id);
        self.retire_shim().await;
        self.settle_output().await;
    }

    async fn next_turn(&mut self) -> Turn {
        if self.life.is_forgone() {
            return Turn::Forgone;
        }
        let timer = self.life.timer();
        let mut leaving = self.shared.leaving.subscribe();
        // Whatever else happens does not put it off.
        let next_call = || tokio::time::Instant::now() + self.call_again;
        let is_starting = self.life.task.started.is_none() && !self.life.task.is_waiting();
        let is_awaited = is_starting || self.life.order() == Some(StopOrder::Kill);
        let call_at = match self.unreachable {
            true => *self.call_at.get_or_insert_with(next_call),
            false => next_call(),
        };
        tokio::select! {
            biased;
            _ = leaving.wait_for(|leaving| *leaving) => Turn::Leave,
            report = next_report(&mut self.link) => Turn::Report(report),
            due = sleep_until(timer) => Turn::Due(due),
            Ok(()) = self.ends.clients.changed() => Turn::Clients,
            () = served(&self.shared), if !self.served => {
                self.served = true;
                Turn::Clients
            }
            Some(message) = self.ends.inbox.recv() => Turn::Asked(message),
            () = tokio::time::sleep_until(call_at), if self.unreachable => Turn::CallAgain,
            () = tokio::time::sleep(ROUSE_EVERY), if is_awaited => Turn::Rouse,
            Some(_) = self.children.join_next() => Turn::ChildrenEnded,
            () = turn(&mut self.ends.turn) => Turn::Admitted,
        }
    }

    async fn heard(&mut self, report: Option<ShimReport>) {
        match report {
            Some(ShimReport::Hello { .. } | ShimReport::Started) => {
                self.catch_up(LeaderExits::AwaitWord).await;
            }
            Some(ShimReport::LeaderExited) => self.catch_up(LeaderExits::Count).await,
            Some(ShimReport::TreeEnded { shim }) => {
                self.part_with_shim(shim);
                self.catch_up(LeaderExits::Count).await;
                // The record that the report speaks of was not there: find out what is.
                self.unreachable |= self.life.task.is_live() && !self.life.is_over();
            }
            Some(ShimReport::CannotStart { stage, errno }) => self.cannot_start(stage, errno).await,
            Some(ShimReport::Signalled {
                number,
                processes,
                time_micros,
            }) => {
                let at = Timestamp(time_micros);
                let sent = SentSignal {
                    signal: Signal(number),
                    at,
                    processes,
                };
                self.learn(Input::Signalled(sent)).await;
            }
            Some(ShimReport::Overdue) => {
                let shim_pid = self.shim_pid.unwrap_or_default();
                // A runaway tree takes its time to walk.
                let survivors = spawn_blocking(move || survivors_below(shim_pid)).await;
                self.learn(Input::KillOverdue(survivors.unwrap_or_default()))
                    .await;
            }
            Some(ShimReport::Output { end }) => {
                self.ends.output_end.send_replace(end);
                self.learn(Input::Wrote).await;
            }
            None => self.shim_gone().await,
        }
    }

    async fn due(&mut self, timer: Timer) {
        match timer {
            Timer::Deadline => self.learn(Input::DeadlineReached).await,
            Timer::Foreground => self.learn(Input::ForegroundOver).await,
            // Nobody could have come yet.
            Timer::Reattach if !self.served => self.learn(Input::Clients(Clients::Attached)).await,
            Timer::Reattach => {
                // Somebody may have come in this instant.
                self.count_clients().await;
                self.learn(Input::ClientDisconnected).await;
            }
            Timer::Silence => {
                let (last_output, output_bytes) = self.last_output();
                self.learn(Input::Silence {
                    last_output,
                    output_bytes,
                })
                .await;
            }
            Timer::Grace => self.learn(Input::GraceOver).await,
        }
    }

    async fn count_clients(&mut self) {
        let holders = *self.ends.clients.borrow_and_update();
        let hold = match holders {
            0 => Clients::None(Timestamp::now()),
            _ => Clients::Attached,
        };
        self.learn(Input::Clients(hold)).await;
    }

    /// Takes in something that has happened. That cannot be refused: where it cannot be recorded, it
    /// is tried again until it can, and nothing else happens to the task meanwhile.
    pub(super) async fn learn(&mut self, input: Input) {
        for effect in self.life.step(input, Timestamp::now()) {
            while let Err(error) = self.carry_out(effect).await {
                tracing::error!(task = %self.life.task.id, %error, "a fact waits to be recorded");
                self.tell_failed_start();
                tokio::time::sleep(STORAGE_RETRY).await;
                if *self.shared.leaving.borrow() {
                    return;
                }
            }
        }
    }

    /// Fails only where something could not be recorded.
    pub(super) async fn carry_out(&mut self, effect: Effect) -> Result<(), JournalError> {
        match effect {
            Effect::Record(kind) => self.record(kind, None).await?,
            Effect::Signal(signal) => self.signal(signal).await,
            Effect::Kill => self.kill().await,
            Effect::StopChildren => self.stop_children(),
            Effect::Spill => self.spill().await,
            Effect::Abandon => self.abandon_orphans().await,
            Effect::Listen => self.listen().await,
        }
        Ok(())
    }

    pub(super) fn stop_children(&mut self) {
        let Some(stop) = &self.life.task.stop else {
            return;
        };
        let request = CancelRequest {
            cause: StopCause::Cancel,
            mode: match stop.mode {
                crate::task::StopMode::Graceful(_) => None,
                crate::task::StopMode::Force => Some(super::CancelMode::Force),
            },
            actor: stop.actor.clone(),
            reason: stop.reason.clone(),
            cascade: Cascade::Children,
        };
        let children = Filter {
            parent: Some(self.life.task.id.clone()),
            ..Filter::default()
        };
        self.children
            .spawn(stop_all(Arc::clone(&self.shared), children, request));
    }
}

impl std::fmt::Debug for TaskActor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskActor")
            .field("life", &self.life)
            .finish_non_exhaustive()
    }
}

/// Stops the tasks that match, until there is none.
async fn stop_all(shared: Arc<Shared>, filter: Filter, request: CancelRequest) {
    loop {
        let live = shared.registry.matching(&filter);
        let Some(first) = live.first() else { return };
        for handle in &live {
            if let Some(Err(error)) = handle.cancel(request.clone()).await {
                tracing::error!(task = %handle.task().id, %error, "cannot be stopped yet");
                tokio::time::sleep(STORAGE_RETRY).await;
            }
        }
        // A task that was never born has no end: the next look does not find it.
        if first.ended().await.is_none() && *shared.leaving.borrow() {
            return;
        }
        // An ended task leaves the registry right after it has told its end.
        tokio::task::yield_now().await;
    }
}

pub(super) fn survivors_below(shim_pid: u32) -> Vec<Survivor> {
    let processes = tree::below(shim_pid as i32).processes;
    processes
        .into_iter()
        .map(|process| Survivor {
            pid: process.pid,
            parent_pid: process.parent_pid,
            command: process.command,
            state: process.state.to_string(),
        })
        .collect()
}

async fn next_report(link: &mut Option<ShimLink>) -> Option<ShimReport> {
    match link {
        Some(link) => link.next().await,
        None => std::future::pending().await,
    }
}

async fn turn(turn: &mut Option<oneshot::Receiver<()>>) {
    let come = match turn {
        Some(receiver) => receiver.await,
        None => std::future::pending().await,
    };
    *turn = None;
    if come.is_err() {
        // It never comes.
        std::future::pending().await
    }
}

/// Waits until calls are let in.
async fn served(shared: &Shared) {
    let mut serving = shared.serving.subscribe();
    // The sender is ours, so there is always an answer.
    let _ = serving.wait_for(|serving| *serving).await;
}

async fn sleep_until(timer: Option<(Timestamp, Timer)>) -> Timer {
    let Some((due, timer)) = timer else {
        return std::future::pending().await;
    };
    loop {
        let left = due.since(Timestamp::now());
        if left.is_zero() {
            return timer;
        }
        let until = Instant::now() + left.min(LONGEST_SLEEP);
        tokio::time::sleep_until(until.into()).await;
        // What has been waited for is over, also if somebody has set the clock back meanwhile.
        if left <= LONGEST_SLEEP {
            return timer;
        }
    }
}
