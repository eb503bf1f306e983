//! The timers of a task. Every timer is derived from the task's facts: a finished task has none, and
//! a restart of the server loses none. They depend on the monotonic clock alone, so neither a wall
//! clock that is set nor a suspended machine fires or delays one.

use super::{Clients, DetachRequest, Effect, Life};
use crate::task::{
    Actor, DetachCause, EventKind, Foreground, Moment, Monotonic, OnDisconnect,
    OnForegroundTimeout, OnStale, OrphanPolicy, Placement, StopCause, StopMode,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Timer {
    /// The end of `timeout`.
    Deadline,
    /// The end of `foreground_timeout`.
    Foreground,
    /// The end of `reattach_window`.
    Reattach,
    /// The end of `stale_after` or `idle_timeout`, unless there was output: the actor looks.
    Silence,
    /// The end of the grace of a stop.
    Grace,
    /// The time at which the survivors of a kill are looked up.
    KillDeadline,
}

impl Life {
    /// The timer that is due first.
    pub(in crate::supervisor) fn timer(&self) -> Option<(Monotonic, Timer)> {
        let task = &self.task;
        // No time passes for a queued task.
        if self.is_tree_gone() || task.is_waiting() {
            return None;
        }
        if let Some(stop) = &task.stop {
            return match stop.mode {
                StopMode::Graceful(policy) if !stop.killed => Some((
                    stop.requested.mono.saturating_add(policy.grace),
                    Timer::Grace,
                )),
                StopMode::Graceful(_) | StopMode::Force => {
                    self.kill_deadline.map(|due| (due, Timer::KillDeadline))
                }
            };
        }
        // The orphans are being killed or abandoned: no limit applies to them.
        if task.leader_end.is_some() && task.spec.orphan_policy != OrphanPolicy::Track {
            return None;
        }
        let timers = [
            (self.deadline(), Timer::Deadline),
            (self.foreground_deadline(), Timer::Foreground),
            (self.reattach_deadline(), Timer::Reattach),
            (self.silence_deadline(), Timer::Silence),
        ];
        let set = timers
            .into_iter()
            .filter_map(|(due, timer)| Some((due?, timer)));
        set.min_by_key(|(due, _)| *due)
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
        let started = self.task.started.as_ref()?;
        Some(started.at.mono).max(self.last_output)
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
        }
        if is_idle {
            effects.extend(self.stop_because_of(StopCause::IdleTimeout, now));
        }
        effects
    }

    pub(super) fn output_written(&mut self, now: Moment) -> Vec<Effect> {
        if self.task.stop.is_some() || self.task.stale.take().is_none() {
            return Vec::new();
        }
        self.last_output = Some(now.mono);
        vec![Effect::Record(EventKind::Active)]
    }
}

fn detach_by_server() -> DetachRequest {
    DetachRequest {
        actor: Actor::heeler(),
        reason: None,
        timeout: None,
    }
}
