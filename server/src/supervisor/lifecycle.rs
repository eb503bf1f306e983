//! The state machine of a task: a pure function from the task's facts and one input to the next
//! facts and a list of effects. No clock, no I/O: the task actor passes the time in and carries the
//! effects out, in their order.
//!
//! ```text
//!  QUEUED ── StopRequested, StoppedWhileQueued ──> finished
//!     │ Admitted    Started                LeaderExited (orphans remain), Detach, Silence
//!  STARTING ──────────────> RUNNING ───────────┐
//!     │  │                   │  │ ^────────────┘
//!     │  │ StopRequested     │  │ StopRequested, a deadline
//!     │  └──────> STOPPING <─┘  │
//!     │ SpawnFailed  │ SoftGraceOver: signal; GraceOver, OutputKill: kill; KillOverdue: survivors named
//!     v              v          v
//!  finished <────────┴──────────┘   TreeEnded, EndedUnobserved (with cascade: and ChildrenFinished)
//! ```
//!
//! A task with a restart policy goes from RUNNING back to STARTING when its leader has failed and its tree is empty.
//!
//! A hosted task has no tree: WorkerResult, LeaseDue, or GraceOver during a stop end it.
//!
//! | file | inputs |
//! | --- | --- |
//! | `starting` | admission, the start of the leader, a start that failed |
//! | `restarting` | the end of an attempt that another one follows |
//! | `clock` | deadlines, silence, clients that disconnect |
//! | `readiness` | looks at whether the task is ready, and their deadline |
//! | `input_wait` | looks at whether a silent task waits for input |
//! | `working` | the worker: its lease, progress and result |
//! | `stopping` | the begin of a stop, its phases, its escalation, a kill that is overdue, the output's limit |
//! | `matching` | patterns, and lines that match them |
//! | `ending` | the leader's exit, the end of the tree, the terminal state |
//!
//! The end comes last and once: [`Life::step`] ignores every later input.

pub(super) mod case;
mod clock;
mod ending;
mod input_wait;
mod matching;
mod readiness;
mod restarting;
mod starting;
mod stopping;
mod working;

use std::{sync::Arc, time::Duration};

pub(super) use clock::Timer;
pub(super) use ending::TreeEnded;
pub(crate) use matching::PatternChange;
pub(super) use matching::PatternFound;
pub(super) use readiness::Probed;
pub(super) use stopping::{StopOrder, StopRequest};
pub(super) use working::{Connection, EarlierWork, WorkerSeen};

use readiness::Probing;
use restarting::NextAttempt;

use crate::task::{
    Actor, DetachCause, Detached, EventKind, LeaderEnd, Moment, Monotonic, OutputLimit, Placement,
    Progress, Proof, ProofMethod, ProofResult, SentSignal, Signal, SpawnFailure, Started,
    StopCause, Survivor, Task, WorkerResult,
};

/// The time that a kill has before the survivors are named. The kill goes on after it.
pub(super) const KILL_DEADLINE: Duration = Duration::from_secs(10);

/// A task, with the facts that only its actor needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) task: Task,
    /// Set once the tree is empty, while the end waits for child tasks that are being stopped.
    tree_ended: Option<TreeEnded>,
    children: Children,
    /// The latest activity that is known: output that the actor has looked up, or progress.
    last_activity: Option<Monotonic>,
    /// The latest output that the actor has looked up.
    last_output: Option<Monotonic>,
    worker: WorkerSeen,
    /// The time from which the lease counts, if nothing was heard since.
    lease_from: Monotonic,
    /// The time of the latest PROGRESS event of this server.
    progress_announced: Option<Monotonic>,
    /// The time at which progress is announced that has not been.
    progress_due: Option<Monotonic>,
    clients: Clients,
    probing: Probing,
    next_attempt: NextAttempt,
    /// True if the orphans of a failed attempt are being killed.
    are_orphans_killed: bool,
    /// The number of looks for awaited input in the present silence.
    input_looks: u32,
    /// The survivors in the tree, and those of child tasks, as last looked up.
    survivors: Vec<Survivor>,
    child_survivors: Vec<Survivor>,
    /// The time at which the survivors of a kill are looked up.
    kill_deadline: Option<Monotonic>,
}

/// The attached clients of a foreground task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    Attached,
    /// No client is attached, since this time. A server starts with no client.
    None(Monotonic),
}

/// The child tasks, where a stop includes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    NotAwaited,
    Awaited,
    Finished,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// The queued task may start.
    Admitted,
    /// A queued task has a stop request and will never start.
    StoppedWhileQueued,
    /// The leader runs.
    Started(Started),
    SpawnFailed(SpawnFailure),
    /// The leader has exited and other processes of the tree have not. `orphans` names them only
    /// where they are to be abandoned.
    LeaderExited {
        end: LeaderEnd,
        output_bytes: u64,
        orphans: Vec<Survivor>,
    },
    /// The shim has recorded the end of the tree.
    TreeEnded(TreeEnded),
    /// [`Timer::Restart`] is due.
    RestartDue,
    /// [`Timer::Restart`] is due, and the intent of the attempt is not recorded.
    RestartPostponed,
    /// The shim is gone and the tree is empty.
    EndedUnobserved {
        end: LeaderEnd,
        method: ProofMethod,
        output_bytes: u64,
    },
    StopRequested(StopRequest),
    Detach(DetachRequest),
    /// The first client has attached, or the last one has left.
    Clients(Clients),
    /// [`Timer::Deadline`] is due.
    DeadlineReached,
    /// [`Timer::Foreground`] is due.
    ForegroundTimedOut,
    /// [`Timer::Reattach`] is due.
    ClientDisconnected,
    /// [`Timer::Silence`] is due: the time of the latest output, if there is any, and its size.
    Silence {
        last_output: Option<Monotonic>,
        output_bytes: u64,
    },
    /// A task that is stale or needs input has written output.
    OutputWritten,
    /// The task was given input.
    StdinGiven,
    /// Output is dropped by rule.
    OutputLimited(OutputLimit),
    /// The shim has begun to kill the tree, because of its output.
    OutputKill,
    /// [`Timer::Probe`] is due.
    ProbeDue,
    /// A look at the task's readiness is over.
    Probed(Probed),
    /// [`Timer::Ready`] is due.
    ReadyTimedOut,
    /// [`Timer::InputLook`] is due: the time of the latest output, if there is any, and its size.
    StdinLookDue {
        last_output: Option<Monotonic>,
        output_bytes: u64,
    },
    /// A process of the task waits for input.
    StdinAwaited,
    /// The worker has sent a heartbeat.
    Activity,
    /// The worker's report is durable; the progress after it.
    Progress(Arc<Progress>),
    /// [`Timer::Progress`] is due.
    ProgressDue,
    WorkerResult(WorkerResult),
    /// [`Timer::Lease`] is due.
    LeaseDue,
    /// The worker of a hosted task is lost for this reason.
    WorkerLost(String),
    /// Workers can connect to this server from now on.
    WorkersAccepted,
    /// [`Timer::SoftGrace`] is due.
    SoftGraceOver,
    /// [`Timer::Grace`] is due.
    GraceOver,
    SignalSent(SentSignal),
    /// The kill deadline has passed. Without a survivor the last process has just ended, or could
    /// not be looked up.
    KillOverdue(Vec<Survivor>),
    /// The kill deadline of a child task has passed; these are its survivors.
    ChildKillOverdue(Vec<Survivor>),
    /// Every child task has finished.
    ChildrenFinished,
    /// Lines match a pattern whose cool-down is over.
    Matched(PatternFound),
    /// Output was searched for a pattern; lines that match are counted and not told.
    Searched(PatternFound),
    ChangePatterns(PatternChange),
}

/// A request to move a task to the background.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DetachRequest {
    pub(crate) actor: Actor,
    pub(crate) reason: Option<String>,
    /// The time limit from the detach on; `None` keeps the one of the Spawn.
    pub(crate) timeout: Option<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Make the present state durable as this event. Later effects wait for it.
    Record(EventKind),
    /// Ask the tree to stop.
    Signal(Signal),
    /// Kill the tree.
    Kill,
    /// Stop the child tasks; [`Input::ChildrenFinished`] is the answer.
    StopChildren,
    /// Move the output to disk.
    Spill,
    /// Leave the orphans alone.
    Abandon,
    /// Forget what concerns the attempt that is over.
    AwaitAttempt,
    /// Order the next attempt; [`Input::Started`] or [`Input::SpawnFailed`] is the answer.
    BeginAttempt,
    /// Report the next output; [`Input::OutputWritten`] is the answer.
    FollowOutput,
    /// Look whether the task is ready; [`Input::Probed`] is the answer.
    Probe,
    /// Look whether a process waits for input; [`Input::StdinAwaited`] is the answer if one does.
    LookForInput,
}

impl Life {
    /// The life of a task from now on. `earlier` is what earlier servers know of its worker.
    pub(super) fn new(task: Task, earlier: EarlierWork, now: Monotonic) -> Self {
        let stop = task.stop.as_ref().filter(|_| task.is_live());
        let children = match stop {
            Some(stop) if stop.cascade => Children::Awaited,
            Some(_) | None => Children::NotAwaited,
        };
        // The kill is ordered again, so its deadline starts again.
        let killed = stop.filter(|stop| stop.killed);
        let mut life = Self {
            kill_deadline: killed.map(|_| now.saturating_add(KILL_DEADLINE)),
            task,
            tree_ended: None,
            children,
            last_activity: None,
            last_output: None,
            worker: WorkerSeen::default(),
            lease_from: now,
            progress_announced: None,
            progress_due: None,
            clients: Clients::None(now),
            probing: Probing::default(),
            next_attempt: NextAttempt::default(),
            are_orphans_killed: false,
            input_looks: 0,
            survivors: Vec::new(),
            child_survivors: Vec::new(),
        };
        life.take_over_work(earlier, now);
        life
    }

    /// True once the tree is empty, also while the end still waits for child tasks.
    pub(super) fn is_tree_gone(&self) -> bool {
        !self.task.is_live() || self.tree_ended.is_some()
    }

    /// The proof of an end that still waits for child tasks.
    pub(super) fn tree_proof(&self) -> Option<Proof> {
        let ended = self.tree_ended.as_ref();
        ended.map(TreeEnded::proof)
    }

    /// The task with a proof in its stop record, for an answer that cannot wait for the end.
    pub(super) fn task_with_proof(&self, proof: Proof) -> Task {
        let mut task = self.task.clone();
        if let Some(stop) = &mut task.stop {
            stop.proof = Some(proof);
        }
        task
    }

    pub(super) fn awaits_children(&self) -> bool {
        self.task.is_live() && self.children == Children::Awaited
    }

    /// Applies one input at the time `now`.
    pub(super) fn step(&mut self, input: Input, now: Moment) -> Vec<Effect> {
        if self.task.ended.is_some() {
            return Vec::new();
        }
        match input {
            Input::Admitted => self.admitted(now),
            Input::StoppedWhileQueued => self.stopped_while_queued(now),
            Input::Started(started) => self.started(started),
            Input::SpawnFailed(failure) => self.spawn_failed(failure, now),
            Input::LeaderExited {
                end,
                output_bytes,
                orphans,
            } => self.leader_exited(end, output_bytes, orphans, now),
            Input::TreeEnded(end) => match self.restart_after(&end, now) {
                Some(effects) => effects,
                None => self.tree_ended(end, now.wall),
            },
            Input::RestartDue => self.restart_is_due(),
            Input::RestartPostponed => self.restart_postponed(now),
            Input::EndedUnobserved {
                end,
                method,
                output_bytes,
            } => {
                let proof = ProofResult::Proven(method);
                let end =
                    TreeEnded::unobserved(&self.task, Some(end), proof, output_bytes, now.wall);
                self.tree_ended(end, now.wall)
            }
            Input::StopRequested(request) => self.stop_requested(request, now),
            Input::Detach(request) => self.detach(DetachCause::Requested, request, now),
            Input::Clients(clients) => {
                self.clients = clients;
                Vec::new()
            }
            Input::DeadlineReached => self.stop_because_of(StopCause::Timeout, now),
            Input::ForegroundTimedOut => self.foreground_timed_out(now),
            Input::ClientDisconnected => self.client_disconnected(now),
            Input::Silence {
                last_output,
                output_bytes,
            } => self.silence(last_output, output_bytes, now),
            Input::OutputWritten => self.output_written(now),
            Input::StdinGiven => self.input_given(),
            Input::OutputLimited(limit) => self.output_limited(limit),
            Input::OutputKill => self.stop_because_of(StopCause::OutputLimit, now),
            Input::ProbeDue => self.probe_due(),
            Input::Probed(result) => self.probed(result, now),
            Input::ReadyTimedOut => self.ready_timed_out(now),
            Input::StdinLookDue {
                last_output,
                output_bytes,
            } => self.input_look_due(last_output, output_bytes, now),
            Input::StdinAwaited => self.input_awaited(now),
            Input::Activity => self.activity(now),
            Input::Progress(progress) => self.progress_reported(progress, now),
            Input::ProgressDue => self.announce_progress(now),
            Input::WorkerResult(result) => self.worker_result(result, now),
            Input::LeaseDue => self.lease_due(now),
            Input::WorkerLost(known) => self.worker_lost(known, now),
            Input::WorkersAccepted => self.workers_accepted(now),
            Input::SoftGraceOver => self.soft_grace_over(now),
            Input::GraceOver => self.grace_over(now),
            Input::SignalSent(sent) => self.signal_sent(sent),
            Input::KillOverdue(survivors) => self.kill_overdue(survivors, now),
            Input::ChildKillOverdue(survivors) => self.child_kill_overdue(survivors, now),
            Input::ChildrenFinished => self.children_finished(now.wall),
            Input::Matched(found) => self.matched(found, now),
            Input::Searched(found) => self.searched(found),
            Input::ChangePatterns(change) => self.patterns_changed(&change),
        }
    }

    fn detach(&mut self, cause: DetachCause, request: DetachRequest, now: Moment) -> Vec<Effect> {
        if self.task.placement() == Placement::Background || self.tree_ended.is_some() {
            return Vec::new();
        }
        self.task.detached = Some(Detached {
            cause,
            actor: request.actor,
            reason: request.reason,
            at: now.wall,
            ran_at: self.task.started.is_some().then_some(now.mono),
            timeout: request.timeout,
        });
        vec![Effect::Record(EventKind::Detached), Effect::Spill]
    }
}

#[cfg(test)]
mod tests;
