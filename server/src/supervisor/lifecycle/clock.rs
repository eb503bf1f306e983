//! The timers of a task. Every timer is derived from the task's facts: a finished task has none, and
//! a restart of the server loses none. They depend on the monotonic clock alone, so neither a wall
//! clock that is set nor a suspended machine fires or delays one.

use super::{Clients, DetachRequest, Effect, Life};
use crate::task::{
    Actor, DetachCause, EventKind, Foreground, Moment, Monotonic, OnDisconnect,
    OnForegroundTimeout, OnStale, OrphanPolicy, Placement, Stop, StopCause, StopPhase,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Timer {
    /// The end of `timeout`.
    Deadline,
    /// The end of `foreground_timeout`.
    Foreground,
    /// The end of `reattach_window`.
    Reattach,
    /// The end of `stale_after` or `idle_timeout`, unless there was activity: the actor looks.
    Silence,
    /// The time of the next attempt.
    Restart,
    /// The time of the next look at whether the task is ready.
    Probe,
    /// The end of the time to become ready.
    Ready,
    /// The time of the next look at whether the task waits for input, unless there was output.
    InputLook,
    /// The end of the lease of a worker, unless it was heard: the actor looks.
    Lease,
    /// The time to announce progress.
    Progress,
    /// The end of the soft phase of a stop.
    SoftGrace,
    /// The end of the grace of a stop.
    Grace,
    /// The time at which the survivors of a kill are looked up.
    KillDeadline,
}

impl Life {
    /// The timer that is due first.
    pub(in crate::supervisor) fn timer(&self) -> Option<(Monotonic, Timer)> {
        if self.is_tree_gone() {
            return None;
        }
        let own = match &self.task.stop {
            // No limit counts for a queued task; only its worker may be lost.
            _ if self.task.is_waiting() => None,
            // The actor ends the shim, and then the task.
            Some(_) if self.is_between_attempts() => None,
            Some(stop) => self.stop_timer(stop),
            None => self.limit(),
        };
        let worker = [
            (self.lease_deadline(), Timer::Lease),
            (self.progress_due, Timer::Progress),
        ];
        own.into_iter()
            .chain(set(worker))
            .min_by_key(|(due, _)| *due)
    }

    fn stop_timer(&self, stop: &Stop) -> Option<(Monotonic, Timer)> {
        match stop.phase() {
            StopPhase::Soft { until } => Some((until, Timer::SoftGrace)),
            StopPhase::Signal { until, .. } => Some((until, Timer::Grace)),
            // There is nothing to kill: the task ends at once.
            StopPhase::Kill if self.task.is_hosted() => Some((stop.requested.mono, Timer::Grace)),
            StopPhase::Kill => self.kill_deadline.map(|due| (due, Timer::KillDeadline)),
        }
    }

    /// The first limit of a task that is not being stopped.
    fn limit(&self) -> Option<(Monotonic, Timer)> {
        let task = &self.task;
        // The orphans are being killed or abandoned: no limit applies to them.
        if task.leader_end.is_some() && task.spec.orphan_policy != OrphanPolicy::Track {
            return None;
        }
        if self.is_between_attempts() {
            let timers = [
                (self.deadline(), Timer::Deadline),
                (self.restart_due(), Timer::Restart),
            ];
            return set(timers).min_by_key(|(due, _)| *due);
        }
        let timers = [
            (self.deadline(), Timer::Deadline),
            (self.foreground_deadline(), Timer::Foreground),
            (self.reattach_deadline(), Timer::Reattach),
            (self.silence_deadline(), Timer::Silence),
            (self.ready_deadline(), Timer::Ready),
            (self.next_probe(), Timer::Probe),
            (self.next_input_look(), Timer::InputLook),
        ];
        set(timers).min_by_key(|(due, _)| *due)
    }

    fn deadline(&self) -> Option<Monotonic> {
        let since = self.task.background_since()?;
        Some(since.saturating_add(self.task.timeout()?))
    }

    fn foreground_deadline(&self) -> Option<Monotonic> {
        let foreground = self.foreground()?;
        let started = self.task.started.as_ref()?;
        Some(started.at.mono.saturating_add(foreground.timeout))
    }

    fn reattach_deadline(&self) -> Option<Monotonic> {
        let foreground = self.foreground()?;
        match (foreground.on_disconnect, self.clients) {
            (OnDisconnect::Cancel | OnDisconnect::Detach, Clients::None(since)) => {
                Some(since.saturating_add(foreground.reattach_window))
            }
            (OnDisconnect::Keep, _) | (_, Clients::Attached) => None,
        }
    }

    fn silence_deadline(&self) -> Option<Monotonic> {
        let spec = &self.task.spec;
        let silence = spec.silence.filter(|_| self.task.stale.is_none());
        let spans = [
            silence.map(|silence| silence.stale_after),
            spec.idle_timeout,
        ];
        let span = spans.into_iter().flatten().min()?;
        Some(self.silent_since()?.saturating_add(span))
    }

    fn silent_since(&self) -> Option<Monotonic> {
        Some(self.task.attempt_started()?)
            .max(self.last_activity)
            .max(self.worker.active)
    }

    /// The foreground rules, while the task is in the foreground.
    fn foreground(&self) -> Option<&Foreground> {
        let foreground = self.task.spec.foreground.as_ref();
        foreground.filter(|_| self.task.placement() == Placement::Foreground)
    }

    pub(super) fn foreground_timed_out(&mut self, now: Moment) -> Vec<Effect> {
        match self.foreground().map(|foreground| foreground.on_timeout) {
            Some(OnForegroundTimeout::Detach) => {
                self.detach(DetachCause::ForegroundTimeout, detach_by_server(), now)
            }
            Some(OnForegroundTimeout::Cancel) => self.stop_because_of(StopCause::Timeout, now),
            None => Vec::new(),
        }
    }

    pub(super) fn client_disconnected(&mut self, now: Moment) -> Vec<Effect> {
        let on_disconnect = match (self.foreground(), self.clients) {
            (Some(foreground), Clients::None(_)) => foreground.on_disconnect,
            (None, _) | (_, Clients::Attached) => return Vec::new(),
        };
        match on_disconnect {
            OnDisconnect::Cancel => self.stop_because_of(StopCause::ClientDisconnected, now),
            OnDisconnect::Detach => {
                self.detach(DetachCause::ClientDisconnected, detach_by_server(), now)
            }
            OnDisconnect::Keep => Vec::new(),
        }
    }

    pub(super) fn silence(
        &mut self,
        last_output: Option<Monotonic>,
        output_bytes: u64,
        now: Moment,
    ) -> Vec<Effect> {
        self.last_output = self.last_output.max(last_output);
        self.last_activity = self.last_activity.max(last_output);
        let Some(since) = self.silent_since().filter(|_| self.task.stop.is_none()) else {
            return Vec::new();
        };
        let spec = &self.task.spec;
        let is_over = |span| now.mono >= since.saturating_add(span);
        let stale = spec.silence.filter(|silence| is_over(silence.stale_after));
        let is_idle = spec.idle_timeout.is_some_and(is_over)
            || stale.is_some_and(|silence| silence.on_stale == OnStale::Cancel);
        let mut effects = Vec::new();
        if stale.is_some() && self.task.stale.is_none() {
            self.task.stale = Some(now.wall);
            self.task.output_bytes = self.task.output_bytes.max(output_bytes);
            effects.extend([Effect::Record(EventKind::Stale), Effect::FollowOutput]);
            if self.task.needs_input.is_none() && !self.task.is_hosted() {
                effects.push(Effect::LookForInput);
            }
        }
        if is_idle {
            effects.extend(self.stop_because_of(StopCause::IdleTimeout, now));
        }
        effects
    }

    pub(super) fn output_written(&mut self, now: Moment) -> Vec<Effect> {
        if self.task.stop.is_some() {
            return Vec::new();
        }
        let (stale, needs_input) = (self.task.stale.take(), self.task.needs_input.take());
        if stale.is_none() && needs_input.is_none() {
            return Vec::new();
        }
        self.last_output = Some(now.mono);
        self.last_activity = Some(now.mono);
        self.input_looks = 0;
        vec![Effect::Record(EventKind::Active)]
    }

    /// A heartbeat is no answer to input that is awaited.
    pub(super) fn activity(&mut self, now: Moment) -> Vec<Effect> {
        if self.task.stop.is_some() || self.task.stale.take().is_none() {
            return Vec::new();
        }
        self.last_activity = Some(now.mono);
        vec![Effect::Record(EventKind::Active)]
    }
}

/// The timers that are set.
fn set<const N: usize>(
    timers: [(Option<Monotonic>, Timer); N],
) -> impl Iterator<Item = (Monotonic, Timer)> {
    let set = timers.into_iter();
    set.filter_map(|(due, timer)| Some((due?, timer)))
}

fn detach_by_server() -> DetachRequest {
    DetachRequest {
        actor: Actor::heeler(),
        reason: None,
        timeout: None,
    }
}
