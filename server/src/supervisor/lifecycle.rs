//! What a task does next: a pure function of what is known of it and what has just happened. No
//! clock, no I/O; the actor brings the time in and carries the effects out, in their order.
//!
//! ```text
//!  QUEUED ── StopRequested, Forgone ──> ended
//!     │ Admitted    Started                LeaderExited (others live on), Detach, Silence
//!  STARTING ──────────────> RUNNING ───────────┐
//!     │  │                   │  │ ^────────────┘
//!     │  │ StopRequested     │  │ StopRequested, a deadline
//!     │  └──────> STOPPING <─┘  │
//!     │ SpawnFailed  │ GraceOver: kill
//!     v              v          v
//!   ended <──────────┴──────────┘   TreeEnded, Unseen (and, with cascade, ChildrenEnded)
//! ```
//!
//! `stopping` has what leads to a stop and what follows from one, `clock` what time does to a task.
//!
//! Wherever a task is, its end comes last and once: [`Life::step`] ignores what comes after it.

mod clock;
mod stopping;

use std::time::Duration;

pub(super) use clock::Timer;
pub(super) use stopping::{StopOrder, StopRequest};

use crate::task::{
    Actor, DetachCause, Detached, EndReason, EndState, Ended, EventKind, LeaderEnd, OrphanPolicy,
    Outcome, Placement, Proof, ProofMethod, SentSignal, Signal, SpawnFailure, Started, StopCause,
    Survivor, Task, Timestamp,
};

/// A task with what only its owner needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Life {
    pub(super) task: Task,
    /// The tree is empty; the end waits only for the children that are being stopped too.
    over: Option<TreeEnded>,
    /// Whether the tasks that it spawned are gone, where a stop includes them.
    children: Children,
    /// When it last wrote output, as far as anybody has looked.
    last_output: Timestamp,
    /// Whether somebody holds it.
    clients: Clients,
}

/// Whether somebody holds a task, if it is in the foreground. Nobody does when a server begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clients {
    /// Somebody.
    Attached,
    /// Nobody, since then.
    None(Timestamp),
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
    /// Its turn has come.
    Admitted,
    /// It was stopped before its turn had come, which it never will.
    Forgone,
    /// Its leader runs.
    Started(Started),
    /// Its leader could not be started.
    SpawnFailed(SpawnFailure),
    /// Its leader is gone; others of its tree are not. They are named where they are to be left.
    LeaderExited {
        end: LeaderEnd,
        output_bytes: u64,
        others: Vec<Survivor>,
    },
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
    /// Somebody wants it in the background.
    Detach(DetachRequest),
    /// Somebody has begun to hold it, or the last one has let go.
    Clients(Clients),
    /// [`Timer::Deadline`] is due.
    DeadlineReached,
    /// [`Timer::Foreground`] is due.
    ForegroundOver,
    /// [`Timer::Reattach`] is due.
    ClientDisconnected,
    /// [`Timer::Silence`] is due: when it last wrote, and how much there is.
    Silence {
        last_output: Timestamp,
        output_bytes: u64,
    },
    /// It has written output, which is looked for while it is stale.
    Wrote,
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
    /// Whether others of the tree were left to themselves.
    pub(super) abandoned: bool,
    pub(super) cpu: Duration,
    pub(super) max_memory: u64,
}

/// Who wants a task in the background, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetachRequest {
    /// Who asks.
    pub actor: Actor,
    /// Why.
    pub reason: Option<String>,
    /// How long it may run from then on, if that is to be another time than it was given first.
    pub timeout: Option<Duration>,
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
    /// Keep its output on disk from now on.
    Spill,
    /// Leave its tree to itself.
    Abandon,
    /// Look for output; [`Input::Wrote`] is the answer.
    Listen,
}

impl Life {
    pub(super) fn new(task: Task, now: Timestamp) -> Self {
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
            last_output: Timestamp::default(),
            clients: Clients::None(now),
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

    /// What happens at `now` because of `input`.
    pub(super) fn step(&mut self, input: Input, now: Timestamp) -> Vec<Effect> {
        if self.task.ended.is_some() {
            return Vec::new();
        }
        match input {
            Input::Admitted => self.admitted(now),
            Input::Forgone => self.forgone(now),
            Input::Started(started) => self.started(started),
            Input::SpawnFailed(failure) => self.spawn_failed(failure, now),
            Input::LeaderExited {
                end,
                output_bytes,
                others,
            } => self.leader_exited(end, output_bytes, others),
            Input::TreeEnded(end) => self.tree_ended(end, now),
            Input::Unseen {
                end,
                method,
                output_bytes,
            } => self.unseen(end, method, output_bytes, now),
            Input::StopRequested(request) => self.stop_requested(request, now),
            Input::Detach(request) => self.detach(DetachCause::Requested, request, now),
            Input::Clients(hold) => {
                self.clients = hold;
                Vec::new()
            }
            Input::DeadlineReached => self.run_out(StopCause::Timeout, now),
            Input::ForegroundOver => self.foreground_over(now),
            Input::ClientDisconnected => self.holder_gone(now),
            Input::Silence {
                last_output,
                output_bytes,
            } => self.silence(last_output, output_bytes, now),
            Input::Wrote => self.wrote(now),
            Input::GraceOver => self.grace_over(now),
            Input::Signalled(sent) => self.signalled(sent),
            Input::KillOverdue(survivors) => self.kill_overdue(survivors, now),
            Input::ChildrenEnded => {
                self.children = Children::Gone;
                self.end_if_over(now)
            }
        }
    }

    fn admitted(&mut self, now: Timestamp) -> Vec<Effect> {
        match &mut self.task.queued {
            Some(queued) if queued.admitted.is_none() && self.task.stop.is_none() => {
                queued.admitted = Some(now);
                // While it waited there was nothing to hold.
                if let Clients::None(_) = self.clients {
                    self.clients = Clients::None(now);
                }
                vec![Effect::Record(EventKind::Admitted)]
            }
            Some(_) | None => Vec::new(),
        }
    }

    /// Whether it is being stopped before its turn has come: all that is left is to say so.
    pub(super) fn is_forgone(&self) -> bool {
        let task = &self.task;
        task.is_live() && task.is_waiting() && task.stop.is_some() && self.over.is_none()
    }

    fn forgone(&mut self, now: Timestamp) -> Vec<Effect> {
        match self.is_forgone() {
            true => self.never_ran(None, now),
            false => Vec::new(),
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
        let end = LeaderEnd {
            outcome: Outcome::SpawnFailed(failure),
            at: now,
        };
        self.never_ran(Some(end), now)
    }

    fn never_ran(&mut self, leader: Option<LeaderEnd>, now: Timestamp) -> Vec<Effect> {
        self.tree_ended(
            TreeEnded {
                leader,
                at: now,
                method: ProofMethod::NeverStarted,
                output_bytes: 0,
                capture_error: None,
                abandoned: false,
                cpu: Duration::ZERO,
                max_memory: 0,
            },
            now,
        )
    }

    fn leader_exited(
        &mut self,
        end: LeaderEnd,
        output_bytes: u64,
        others: Vec<Survivor>,
    ) -> Vec<Effect> {
        if self.task.leader_end.is_some() {
            return Vec::new();
        }
        let held = self.task.placement() == Placement::Foreground;
        self.task.leader_end = Some(end);
        self.task.output_bytes = output_bytes;
        self.task.abandoned = others;
        let mut effects = vec![Effect::Record(EventKind::LeaderExited)];
        match self.task.spec.orphan_policy {
            OrphanPolicy::Track if held => effects.push(Effect::Spill),
            OrphanPolicy::Track => {}
            OrphanPolicy::Kill => effects.push(Effect::Kill),
            // A stop that is under way reaches everybody.
            OrphanPolicy::Abandon if self.task.stop.is_none() => effects.push(Effect::Abandon),
            OrphanPolicy::Abandon => {}
        }
        effects
    }

    fn detach(
        &mut self,
        cause: DetachCause,
        request: DetachRequest,
        now: Timestamp,
    ) -> Vec<Effect> {
        if self.task.placement() == Placement::Background || self.over.is_some() {
            return Vec::new();
        }
        self.task.detached = Some(Detached {
            cause,
            actor: request.actor,
            reason: request.reason,
            at: now,
            timeout: request.timeout,
        });
        vec![Effect::Record(EventKind::Detached), Effect::Spill]
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
                abandoned: false,
                cpu: Duration::ZERO,
                max_memory: 0,
            },
            now,
        )
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
        if !over.abandoned || task.stop.is_some() {
            task.abandoned = Vec::new();
        }
        if let Some(stop) = &mut task.stop {
            stop.proof = Some(Proof::proven(over.method, over.at));
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

/// Who acts when nobody has asked.
fn heeler() -> Actor {
    Actor {
        name: Some("heeler".to_owned()),
        uid: None,
        pid: None,
    }
}

/// Which terminal state, and why: who asked for the end comes before how it came.
fn verdict(task: &Task) -> (EndState, EndReason) {
    if let Some(stop) = &task.stop {
        return match stop.cause {
            StopCause::Cancel => (EndState::Cancelled, EndReason::Cancelled),
            StopCause::Timeout => (EndState::TimedOut, EndReason::Timeout),
            StopCause::IdleTimeout => (EndState::TimedOut, EndReason::IdleTimeout),
            StopCause::Shutdown => (EndState::Cancelled, EndReason::ServerShutdown),
            StopCause::ClientDisconnected => (EndState::Cancelled, EndReason::ClientDisconnected),
            StopCause::Replaced => (EndState::Cancelled, EndReason::Replaced),
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
