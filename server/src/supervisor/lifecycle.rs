//! What a task does next: a pure function of what is known of it and what has just happened. No
//! clock, no I/O; the actor brings the time in and carries the effects out, in their order.
//!
//! ```text
//!                 Started                LeaderExited (others live on)
//!  STARTING ──────────────> RUNNING ───────────┐
//!     │  │                   │  │ ^────────────┘
//!     │  │ StopRequested     │  │ StopRequested, DeadlineReached
//!     │  └──────> STOPPING <─┘  │
//!     │ SpawnFailed  │ GraceOver: kill
//!     v              v          v
//!   ended <──────────┴──────────┘   TreeEnded, Unseen (and, with cascade, ChildrenEnded)
//! ```
//!
//! Wherever a task is, its end comes last and once: [`Life::step`] ignores what comes after it.

use std::time::Duration;

use crate::task::{
    Actor, EndReason, EndState, Ended, EventKind, LeaderEnd, Outcome, Proof, ProofMethod,
    SentSignal, Signal, SpawnFailure, Started, Stop, StopCause, StopMode, Survivor, Task,
    Timestamp,
};

const SIGKILL: Signal = Signal(9);

/// A task with what only its owner needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) task: Task,
    /// The tree is empty; the end waits only for the children that are being stopped too.
    over: Option<TreeEnded>,
    /// Whether the tasks that it spawned are gone, where a stop includes them.
    children: Children,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Children {
    NotAwaited,
    Awaited,
    Gone,
}

/// What can happen to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Input {
    /// Its leader runs.
    Started(Started),
    /// Its leader could not be started.
    SpawnFailed(SpawnFailure),
    /// Its leader is gone; others of its tree are not.
    LeaderExited { end: LeaderEnd, output_bytes: u64 },
    /// Its shim has no child left.
    TreeEnded(TreeEnded),
    /// Its shim is gone, and nobody is left of its tree.
    Unseen {
        end: LeaderEnd,
        method: ProofMethod,
        output_bytes: u64,
    },
    /// Somebody wants it stopped.
    StopRequested(StopRequest),
    /// [`Timer::Deadline`] is due.
    DeadlineReached,
    /// [`Timer::Grace`] is due.
    GraceOver,
    /// A signal went out.
    Signalled(SentSignal),
    /// The kill takes longer than it may.
    KillOverdue(Vec<Survivor>),
    /// The tasks that it spawned are over.
    ChildrenEnded,
}

/// What a shim recorded at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TreeEnded {
    pub(super) leader: Option<LeaderEnd>,
    pub(super) at: Timestamp,
    pub(super) method: ProofMethod,
    pub(super) output_bytes: u64,
    pub(super) capture_error: Option<String>,
    pub(super) cpu: Duration,
    pub(super) max_memory: u64,
}

/// Who wants a task stopped, why and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StopRequest {
    pub(super) cause: StopCause,
    pub(super) actor: Actor,
    pub(super) reason: Option<String>,
    pub(super) mode: StopMode,
    pub(super) cascade: bool,
}

/// What is to be done about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Make the task's present state durable, and tell it as this event. What follows waits for it.
    Record(EventKind),
    /// Ask the tree to stop.
    Signal(Signal),
    /// Kill the tree.
    Kill,
    /// Stop the tasks that this one spawned; [`Input::ChildrenEnded`] is the answer.
    StopChildren,
}

/// What a shim is told about stopping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StopOrder {
    /// Ask the tree, with this signal.
    Ask(Signal),
    /// Kill it.
    Kill,
}

/// What a task waits for the clock for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Timer {
    /// Its timeout.
    Deadline,
    /// The end of the time it has to obey.
    Grace,
}

impl Life {
    pub(super) fn new(task: Task) -> Self {
        let awaited = task.is_live() && task.stop.as_ref().is_some_and(|stop| stop.cascade);
        let children = if awaited {
            Children::Awaited
        } else {
            Children::NotAwaited
        };
        Self {
            task,
            over: None,
            children,
        }
    }

    /// The one timer that is running, read off the facts: a task that is over has none.
    pub(super) fn timer(&self) -> Option<(Timestamp, Timer)> {
        let task = &self.task;
        if task.ended.is_some() || self.over.is_some() {
            return None;
        }
        match (&task.stop, &task.started) {
            (Some(stop), _) => match stop.mode {
                StopMode::Graceful(policy) if !stop.killed => {
                    Some((stop.requested.saturating_add(policy.grace), Timer::Grace))
                }
                StopMode::Graceful(_) | StopMode::Force => None,
            },
            (None, Some(started)) => {
                let timeout = task.spec.timeout?;
                Some((started.at.saturating_add(timeout), Timer::Deadline))
            }
            (None, None) => None,
        }
    }

    /// Whether the tree is gone and only the end is still to be told.
    pub(super) fn is_over(&self) -> bool {
        self.over.is_some()
    }

    /// Whether the end waits for the tasks that it spawned.
    pub(super) fn awaits_children(&self) -> bool {
        self.task.is_live() && self.children == Children::Awaited
    }

    /// What its shim was last told about stopping.
    pub(super) fn order(&self) -> Option<StopOrder> {
        let stop = self.task.stop.as_ref().filter(|_| self.task.is_live())?;
        match stop.mode {
            StopMode::Graceful(policy) if !stop.killed => Some(StopOrder::Ask(policy.signal)),
            StopMode::Graceful(_) | StopMode::Force => Some(StopOrder::Kill),
        }
    }

    /// What happens at `now` because of `input`.
    pub(super) fn step(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        if self.task.ended.is_some() {
            return Vec::new();
        }
        match input {
            Input::Started(started) => self.started(started),
            Input::SpawnFailed(failure) => self.spawn_failed(failure, now),
            Input::LeaderExited { end, output_bytes } => self.leader_exited(end, output_bytes),
            Input::TreeEnded(end) => self.tree_ended(end, now),
            Input::Unseen {
                end,
                method,
                output_bytes,
            } => self.unseen(end, method, output_bytes, now),
            Input::StopRequested(request) => self.stop_requested(request, now),
            Input::DeadlineReached => self.deadline_reached(now),
            Input::GraceOver => self.grace_over(now),
            Input::Signalled(sent) => self.signalled(sent),
            Input::KillOverdue(survivors) => self.kill_overdue(survivors, now),
            Input::ChildrenEnded => {
                self.children = Children::Gone;
                self.end_if_over(now)
            }
        }
    }

    fn started(&mut self, started: Started) -> Vec<Effect> {
        if self.task.started.is_some() {
            return Vec::new();
        }
        self.task.started = Some(started);
        vec![Effect::Record(EventKind::Started)]
    }

    fn spawn_failed(&mut self, failure: SpawnFailure, now: Timestamp) -> Vec<Effect> {
        self.tree_ended(
            TreeEnded {
                leader: Some(LeaderEnd {
                    outcome: Outcome::SpawnFailed(failure),
                    at: now,
                }),
                at: now,
                method: ProofMethod::NeverStarted,
                output_bytes: 0,
                capture_error: None,
                cpu: Duration::ZERO,
                max_memory: 0,
            },
            now,
        )
    }

    fn leader_exited(&mut self, end: LeaderEnd, output_bytes: u64) -> Vec<Effect> {
        if self.task.leader_end.is_some() {
            return Vec::new();
        }
        self.task.leader_end = Some(end);
        self.task.output_bytes = output_bytes;
        vec![Effect::Record(EventKind::LeaderExited)]
    }

    fn tree_ended(&mut self, end: TreeEnded, now: Timestamp) -> Vec<Effect> {
        self.over.get_or_insert(end);
        self.end_if_over(now)
    }

    fn unseen(
        &mut self,
        end: LeaderEnd,
        method: ProofMethod,
        output_bytes: u64,
        now: Timestamp,
    ) -> Vec<Effect> {
        self.tree_ended(
            TreeEnded {
                leader: Some(end),
                at: now,
                method,
                output_bytes,
                capture_error: None,
                cpu: Duration::ZERO,
                max_memory: 0,
            },
            now,
        )
    }

    fn stop_requested(&mut self, request: StopRequest, now: Timestamp) -> Vec<Effect> {
        match &mut self.task.stop {
            None => self.begin_stop(request, now),
            // Only more urgency, or more reach, changes a stop that is under way: it keeps its
            // cause and its clock.
            Some(stop) => {
                let force = request.mode == StopMode::Force && stop.mode != StopMode::Force;
                let kill = force && !stop.killed;
                let reach = request.cascade && (force || !stop.cascade);
                if !force && !reach {
                    return Vec::new();
                }
                stop.cascade |= request.cascade;
                if force {
                    stop.mode = StopMode::Force;
                }
                let mut effects = vec![Effect::Record(EventKind::Stopping)];
                if reach {
                    self.children = Children::Awaited;
                    effects.push(Effect::StopChildren);
                }
                if kill {
                    effects.extend(self.kill(now));
                }
                effects
            }
        }
    }

    fn begin_stop(&mut self, request: StopRequest, now: Timestamp) -> Vec<Effect> {
        let mode = request.mode;
        self.task.stop = Some(Stop {
            cause: request.cause,
            actor: request.actor,
            reason: request.reason,
            requested: now,
            mode,
            cascade: request.cascade,
            killed: false,
            signals: Vec::new(),
            proof: None,
        });
        let mut effects = vec![Effect::Record(EventKind::Stopping)];
        if request.cascade {
            self.children = Children::Awaited;
            effects.push(Effect::StopChildren);
        }
        match (mode, &self.task.started) {
            (StopMode::Graceful(policy), Some(_)) => {
                effects.push(Effect::Signal(policy.signal));
                if policy.grace.is_zero() {
                    effects.extend(self.kill(now));
                }
            }
            // What has not begun has nothing to tidy up.
            (StopMode::Graceful(_), None) | (StopMode::Force, _) => effects.extend(self.kill(now)),
        }
        effects
    }

    fn deadline_reached(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.task.stop.is_some() || self.over.is_some() {
            return Vec::new();
        }
        let request = StopRequest {
            cause: StopCause::Deadline,
            actor: Actor {
                name: Some("heeler".to_owned()),
                uid: None,
                pid: None,
            },
            reason: None,
            mode: StopMode::Graceful(self.task.spec.stop_policy),
            cascade: false,
        };
        self.begin_stop(request, now)
    }

    fn grace_over(&mut self, now: Timestamp) -> Vec<Effect> {
        match &self.task.stop {
            Some(stop) if !stop.killed && self.over.is_none() => self.kill(now),
            Some(_) | None => Vec::new(),
        }
    }

    fn kill(&mut self, now: Timestamp) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            stop.killed = true;
            stop.signals.push(SentSignal {
                signal: SIGKILL,
                at: now,
                processes: 0,
            });
        }
        vec![Effect::Kill]
    }

    /// The stop signal goes out before the kill, though it may be reported after it.
    fn signalled(&mut self, sent: SentSignal) -> Vec<Effect> {
        if let Some(stop) = &mut self.task.stop {
            let is_kill = |sent: &SentSignal| sent.signal == SIGKILL && sent.processes == 0;
            let kill = stop.signals.iter().position(is_kill);
            stop.signals
                .insert(kill.unwrap_or(stop.signals.len()), sent);
        }
        Vec::new()
    }

    fn kill_overdue(&mut self, survivors: Vec<Survivor>, now: Timestamp) -> Vec<Effect> {
        let method = self.proof_method();
        // Where nobody has asked for a stop, nobody waits to hear how it goes.
        let Some(stop) = &mut self.task.stop else {
            return Vec::new();
        };
        stop.proof = Some(Proof {
            method,
            at: now,
            survivors,
        });
        vec![Effect::Record(EventKind::KillOverdue)]
    }

    fn proof_method(&self) -> ProofMethod {
        use crate::task::Containment;
        match self
            .task
            .started
            .as_ref()
            .map(|started| started.containment)
        {
            Some(Containment::Cgroup) => ProofMethod::CgroupEmpty,
            Some(Containment::Subreaper) => ProofMethod::NoChildren,
            None => ProofMethod::NeverStarted,
        }
    }

    fn end_if_over(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.children == Children::Awaited {
            return Vec::new();
        }
        let Some(over) = self.over.take() else {
            return Vec::new();
        };
        // It was over when its tree was, unless others had to be over first.
        let at = match self.children {
            Children::Gone => now,
            Children::NotAwaited | Children::Awaited => over.at,
        };
        let task = &mut self.task;
        if task.leader_end.is_none() {
            task.leader_end = over.leader;
        }
        task.output_bytes = over.output_bytes.max(task.output_bytes);
        task.capture_error = over.capture_error;
        if let Some(stop) = &mut task.stop {
            stop.proof = Some(Proof {
                method: over.method,
                at: over.at,
                survivors: Vec::new(),
            });
        }
        let (state, reason) = verdict(task);
        task.ended = Some(Ended {
            state,
            reason,
            at,
            cpu: over.cpu,
            max_memory: over.max_memory,
        });
        vec![Effect::Record(EventKind::Ended)]
    }
}

/// Which terminal state, and why: who asked for the end comes before how it came.
fn verdict(task: &Task) -> (EndState, EndReason) {
    if let Some(stop) = &task.stop {
        return match stop.cause {
            StopCause::Cancel => (EndState::Cancelled, EndReason::Cancelled),
            StopCause::Deadline => (EndState::TimedOut, EndReason::Deadline),
            StopCause::Shutdown => (EndState::Cancelled, EndReason::ServerShutdown),
        };
    }
    let whole = task.capture_error.is_none();
    match task.leader_end.as_ref().map(|end| &end.outcome) {
        Some(Outcome::Exited(0)) if whole => (EndState::Completed, EndReason::Exited),
        Some(Outcome::Exited(_)) => (EndState::Failed, EndReason::Exited),
        Some(Outcome::Signalled { .. }) => (EndState::Failed, EndReason::Signalled),
        Some(Outcome::SpawnFailed(_)) => (EndState::Failed, EndReason::SpawnFailed),
        Some(Outcome::Unknown(_)) | None => (EndState::Lost, EndReason::SupervisionLost),
    }
}

#[cfg(test)]
mod tests;
