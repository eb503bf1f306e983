//! What time does to a task. Every timer is read off its facts, so that none is left behind by a task
//! that is over, and none is lost with a server.

use super::{Clients, DetachRequest, Effect, Life, heeler};
use crate::task::{
    DetachCause, EventKind, OnDisconnect, OnForegroundTimeout, OnStale, OrphanPolicy, Placement,
    StopCause, StopMode, Timestamp,
};

/// What a task waits for the clock for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::supervisor) enum Timer {
    /// Its timeout.
    Deadline,
    /// The end of its time in the foreground.
    Foreground,
    /// The end of the time in which somebody must come to hold it.
    Reattach,
    /// It may have been silent for too long: whether it was is seen by looking.
    Silence,
    /// The end of the time it has to obey.
    Grace,
}

impl Life {
    /// The timer that is due first; a task that is over has none.
    pub(in crate::supervisor) fn timer(&self) -> Option<(Timestamp, Timer)> {
        let task = &self.task;
        // Time does nothing to a task that waits for its turn.
        if task.ended.is_some() || self.over.is_some() || task.is_waiting() {
            return None;
        }
        if let Some(stop) = &task.stop {
            return match stop.mode {
                StopMode::Graceful(policy) if !stop.killed => {
                    Some((stop.requested.saturating_add(policy.grace), Timer::Grace))
                }
                StopMode::Graceful(_) | StopMode::Force => None,
            };
        }
        // The rest is being killed or let go: no time is left to run out.
        if task.leader_end.is_some() && task.spec.orphan_policy != OrphanPolicy::Track {
            return None;
        }
        let timers = [
            self.deadline().map(|due| (due, Timer::Deadline)),
            self.foreground_deadline()
                .map(|due| (due, Timer::Foreground)),
            self.holder_deadline().map(|due| (due, Timer::Reattach)),
            self.silence_deadline().map(|due| (due, Timer::Silence)),
        ];
        timers.into_iter().flatten().min_by_key(|(due, _)| *due)
    }

    fn deadline(&self) -> Option<Timestamp> {
        let since = self.task.background_since()?;
        Some(since.saturating_add(self.task.timeout()?))
    }

    fn foreground_deadline(&self) -> Option<Timestamp> {
        let spec = &self.task.spec;
        let foreground = spec.foreground.as_ref().filter(|_| self.holds())?;
        let started = self.task.started.as_ref()?;
        Some(started.at.saturating_add(foreground.timeout))
    }

    fn holder_deadline(&self) -> Option<Timestamp> {
        let spec = &self.task.spec;
        let foreground = spec.foreground.as_ref().filter(|_| self.holds())?;
        match (foreground.on_disconnect, self.clients) {
            (OnDisconnect::Cancel | OnDisconnect::Detach, Clients::None(since)) => {
                Some(since.saturating_add(foreground.reattach_window))
            }
            (OnDisconnect::Keep, _) | (_, Clients::Attached) => None,
        }
    }

    /// When the first of the two spans of silence is over that it was given.
    fn silence_deadline(&self) -> Option<Timestamp> {
        let spec = &self.task.spec;
        let silence = spec.silence.filter(|_| self.task.stale.is_none());
        let spans = [
            silence.map(|silence| silence.stale_after),
            spec.idle_timeout,
        ];
        let span = spans.into_iter().flatten().min()?;
        Some(self.silent_since()?.saturating_add(span))
    }

    fn silent_since(&self) -> Option<Timestamp> {
        let started = self.task.started.as_ref()?;
        Some(started.at.max(self.last_output))
    }

    fn holds(&self) -> bool {
        self.task.placement() == Placement::Foreground
    }

    pub(super) fn foreground_over(&mut self, now: Timestamp) -> Vec<Effect> {
        let spec = &self.task.spec;
        let Some(foreground) = spec.foreground.as_ref().filter(|_| self.holds()) else {
            return Vec::new();
        };
        match foreground.on_timeout {
            OnForegroundTimeout::Detach => {
                self.detach(DetachCause::ForegroundTimeout, unasked(), now)
            }
            OnForegroundTimeout::Cancel => self.run_out(StopCause::Timeout, now),
        }
    }

    pub(super) fn holder_gone(&mut self, now: Timestamp) -> Vec<Effect> {
        let spec = &self.task.spec;
        let foreground = spec.foreground.as_ref().filter(|_| self.holds());
        let (Some(foreground), Clients::None(_)) = (foreground, self.clients) else {
            return Vec::new();
        };
        match foreground.on_disconnect {
            OnDisconnect::Cancel => self.run_out(StopCause::ClientDisconnected, now),
            OnDisconnect::Detach => self.detach(DetachCause::ClientDisconnected, unasked(), now),
            OnDisconnect::Keep => Vec::new(),
        }
    }

    pub(super) fn silence(
        &mut self,
        last_output: Timestamp,
        output_bytes: u64,
        now: Timestamp,
    ) -> Vec<Effect> {
        self.last_output = self.last_output.max(last_output);
        let Some(since) = self.silent_since().filter(|_| self.task.stop.is_none()) else {
            return Vec::new();
        };
        let spec = &self.task.spec;
        let is_over = |span| now >= since.saturating_add(span);
        let stale = spec.silence.filter(|silence| is_over(silence.stale_after));
        let is_idle = spec.idle_timeout.is_some_and(is_over)
            || stale.is_some_and(|silence| silence.on_stale == OnStale::Cancel);
        let mut effects = Vec::new();
        if stale.is_some() && self.task.stale.is_none() {
            self.task.stale = Some(now);
            self.task.output_bytes = self.task.output_bytes.max(output_bytes);
            effects.extend([Effect::Record(EventKind::Stale), Effect::Listen]);
        }
        if is_idle {
            effects.extend(self.run_out(StopCause::IdleTimeout, now));
        }
        effects
    }

    pub(super) fn wrote(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.task.stop.is_some() || self.task.stale.take().is_none() {
            return Vec::new();
        }
        self.last_output = now;
        vec![Effect::Record(EventKind::Active)]
    }
}

/// Nobody has asked but the clock.
fn unasked() -> DetachRequest {
    DetachRequest {
        actor: heeler(),
        reason: None,
        timeout: None,
    }
}
