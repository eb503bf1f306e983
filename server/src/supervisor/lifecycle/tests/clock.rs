//! The timers, at chosen times.

use super::*;
use crate::task::{
    DEFAULT_REATTACH_WINDOW, Foreground, OnDisconnect, OnForegroundTimeout, OnStale, Silence,
};

pub(super) const SECOND: Duration = Duration::from_secs(1);

/// The moment this many seconds after the start.
pub(super) fn at(seconds: u64) -> Moment {
    moment(10 + seconds * 1_000_000)
}

pub(super) fn mono(seconds: u64) -> Monotonic {
    at(seconds).mono
}

fn foreground() -> Foreground {
    Foreground {
        timeout: 60 * SECOND,
        on_timeout: OnForegroundTimeout::Detach,
        on_disconnect: OnDisconnect::Cancel,
        reattach_window: DEFAULT_REATTACH_WINDOW,
    }
}

pub(super) fn plain() -> Spec {
    Spec::clone(&created(None).task.spec)
}

/// A running task with this specification.
pub(super) fn running_with(spec: Spec) -> Life {
    let mut life = created(None);
    life.task.spec = spec.into();
    life.step(started(), moment(10));
    life
}

/// A running foreground task with an attached client.
fn attached(foreground: Foreground, timeout: Option<Duration>) -> Life {
    let mut life = running_with(Spec {
        foreground: Some(foreground),
        timeout,
        ..plain()
    });
    assert_eq!(life.step(Input::Clients(Clients::Attached), at(0)), []);
    life
}

fn detach(timeout: Option<Duration>) -> Input {
    Input::Detach(DetachRequest {
        actor: Actor::default(),
        reason: None,
        timeout,
    })
}

const DETACHED: [Effect; 2] = [Effect::Record(EventKind::Detached), Effect::Spill];

/// F3
#[test]
fn a_detach_replaces_the_foreground_deadline_by_the_timeout() {
    for (at_spawn, at_detach) in [
        (Some(600 * SECOND), None),
        (None, Some(600 * SECOND)),
        (Some(5 * SECOND), Some(600 * SECOND)),
    ] {
        let mut life = attached(foreground(), at_spawn);
        assert_eq!(life.timer(), Some((mono(60), Timer::Foreground)));
        assert_eq!(life.step(detach(at_detach), at(50)), DETACHED);
        assert_eq!(life.timer(), Some((mono(650), Timer::Deadline)));
        assert_eq!(
            life.step(Input::ForegroundTimedOut, at(60)),
            [],
            "it is detached"
        );
    }
}

/// F3
#[test]
fn a_detached_task_without_a_timeout_has_no_timer() {
    let mut life = attached(foreground(), None);
    life.step(detach(None), at(50));
    assert_eq!(life.timer(), None);
}

/// F4
#[test]
fn the_foreground_deadline_detaches_or_cancels() {
    let mut life = attached(foreground(), None);
    assert_eq!(life.step(Input::ForegroundTimedOut, at(60)), DETACHED);
    let detached = life.task.detached.as_ref().expect("a detach");
    assert_eq!(detached.cause, DetachCause::ForegroundTimeout);

    let cancel = Foreground {
        on_timeout: OnForegroundTimeout::Cancel,
        ..foreground()
    };
    let mut life = attached(cancel, None);
    life.step(Input::ForegroundTimedOut, at(60));
    life.step(tree_ended(0), at(61));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::Timeout))
    );
}

/// F6
#[test]
fn a_client_that_reattaches_within_the_window_keeps_the_task() {
    let mut life = attached(foreground(), None);
    life.step(Input::Clients(Clients::None(mono(5))), at(5));
    assert_eq!(life.timer(), Some((mono(15), Timer::Reattach)));
    life.step(Input::Clients(Clients::Attached), at(14));
    assert_eq!(life.timer(), Some((mono(60), Timer::Foreground)));
    assert_eq!(
        life.step(Input::ClientDisconnected, at(15)),
        [],
        "a client is attached"
    );
}

/// F6
#[test]
fn on_disconnect_applies_once_when_no_client_comes_back() {
    let disconnected = |on_disconnect| {
        let mut life = attached(
            Foreground {
                on_disconnect,
                ..foreground()
            },
            None,
        );
        life.step(Input::Clients(Clients::None(mono(5))), at(5));
        life
    };
    let mut cancelled = disconnected(OnDisconnect::Cancel);
    assert_ne!(cancelled.step(Input::ClientDisconnected, at(15)), []);
    assert_eq!(cancelled.step(Input::ClientDisconnected, at(16)), []);
    cancelled.step(tree_ended(0), at(17));
    assert_eq!(
        end_of(&cancelled),
        Some((EndState::Cancelled, EndReason::ClientDisconnected))
    );
    let mut detached = disconnected(OnDisconnect::Detach);
    assert_eq!(detached.step(Input::ClientDisconnected, at(15)), DETACHED);
    assert_eq!(detached.timer(), None);
    let kept = disconnected(OnDisconnect::Keep);
    assert_eq!(kept.timer(), Some((mono(60), Timer::Foreground)));
}

/// F7
#[test]
fn a_second_detach_changes_nothing() {
    let mut life = attached(foreground(), None);
    life.step(detach(None), at(1));
    let once = life.clone();
    assert_eq!(life.step(detach(Some(SECOND)), at(2)), []);
    assert_eq!(life, once);
}

/// F11
#[test]
fn tracked_orphans_run_in_the_background_after_the_leader_exits() {
    let mut life = attached(foreground(), Some(100 * SECOND));
    let exit = Input::LeaderExited {
        end: LeaderEnd {
            outcome: Outcome::Exited(3),
            at: at(7),
        },
        output_bytes: 0,
        orphans: Vec::new(),
    };
    let effects = life.step(exit, at(7));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::LeaderExited), Effect::Spill]
    );
    assert!(life.task.is_out_of_foreground() && life.task.is_live());
    assert_eq!(life.timer(), Some((mono(107), Timer::Deadline)));
    life.step(tree_ended(3), at(8));
    assert!(!life.task.is_live());
    assert_eq!(life.task.placement(), Placement::Background);
}

/// F11
#[test]
fn a_task_whose_orphans_are_killed_has_no_timer() {
    let spec = Spec {
        foreground: Some(foreground()),
        orphan_policy: OrphanPolicy::Kill,
        idle_timeout: Some(SECOND),
        ..plain()
    };
    let mut life = running_with(spec);
    let exit = Input::LeaderExited {
        end: exited(0),
        output_bytes: 0,
        orphans: Vec::new(),
    };
    let effects = life.step(exit, at(7));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::LeaderExited), Effect::Kill]
    );
    assert_eq!(life.timer(), None);
    assert_eq!(
        life.stop_order(),
        Some(StopOrder::Kill),
        "also after a restart"
    );
    life.step(tree_ended(0), at(8));
    assert_eq!(
        end_of(&life),
        Some((EndState::Completed, EndReason::Exited))
    );
}

fn stale_after(stale_after: Duration, on_stale: OnStale) -> Spec {
    let silence = Silence {
        stale_after,
        on_stale,
    };
    Spec {
        silence: Some(silence),
        ..plain()
    }
}

pub(super) fn silence(last_output: Monotonic) -> Input {
    Input::Silence {
        last_output: Some(last_output),
        output_bytes: 5,
    }
}

/// T4
#[test]
fn output_postpones_the_idle_deadline() {
    let spec = Spec {
        idle_timeout: Some(10 * SECOND),
        ..plain()
    };
    let mut life = running_with(spec);
    assert_eq!(life.timer(), Some((mono(10), Timer::Silence)));
    assert_eq!(life.step(silence(mono(4)), at(10)), [], "there was output");
    assert_eq!(life.timer(), Some((mono(14), Timer::Silence)));
    let effects = life.step(silence(mono(4)), at(14));
    assert_eq!(effects[0], Effect::Record(EventKind::Stopping));
    life.step(tree_ended(0), at(15));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::IdleTimeout))
    );
}

/// T5
#[test]
fn stale_is_recorded_once_for_each_silence() {
    const STALE: [Effect; 3] = [
        Effect::Record(EventKind::Stale),
        Effect::FollowOutput,
        Effect::LookForInput,
    ];
    let mut life = running_with(stale_after(10 * SECOND, OnStale::Notify));
    assert_eq!(life.step(silence(mono(0)), at(10)), STALE);
    assert_eq!(life.timer(), None, "only output ends the silence");
    assert_eq!(life.step(silence(mono(0)), at(30)), [], "the same silence");
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(life.step(Input::Activity, at(40)), active);
    assert_eq!(
        life.step(Input::Activity, at(41)),
        [],
        "the task is active already"
    );
    assert_eq!(life.timer(), Some((mono(50), Timer::Silence)));
    assert_eq!(life.step(silence(mono(41)), at(50)), []);
    assert_eq!(life.step(silence(mono(41)), at(51)), STALE);
}

/// T5
#[test]
fn a_stale_task_is_stopped_if_the_policy_is_cancel() {
    let mut life = running_with(stale_after(10 * SECOND, OnStale::Cancel));
    let effects: Vec<Effect> = life.step(silence(mono(0)), at(10));
    assert!(effects.contains(&Effect::Record(EventKind::Stale)));
    assert!(effects.contains(&Effect::Signal(Signal(15))));
    life.step(tree_ended(0), at(11));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::IdleTimeout))
    );
}

/// T3
#[test]
fn endless_durations_never_fire() {
    let mut endless = foreground();
    endless.timeout = Duration::MAX;
    let mut life = attached(endless, Some(Duration::MAX));
    assert_eq!(life.timer(), Some((Monotonic(u64::MAX), Timer::Foreground)));
    life.step(detach(None), at(1));
    assert_eq!(life.timer(), Some((Monotonic(u64::MAX), Timer::Deadline)));
}

/// The same moment, after the wall clock was set this many days forward.
fn days_ahead(days: i64, moment: Moment) -> Moment {
    let micros = days * 24 * 3600 * 1_000_000;
    Moment {
        wall: Timestamp(moment.wall.0.saturating_add_signed(micros)),
        ..moment
    }
}

/// T6
#[test]
fn a_wall_clock_that_is_set_changes_no_timer() {
    for days in [-1, 1] {
        let later = |seconds| days_ahead(days, at(seconds));
        let mut life = attached(foreground(), Some(600 * SECOND));
        life.step(Input::Clients(Clients::None(mono(5))), later(5));
        assert_eq!(life.timer(), Some((mono(15), Timer::Reattach)));
        life.step(Input::Clients(Clients::Attached), later(6));
        assert_eq!(life.timer(), Some((mono(60), Timer::Foreground)));
        life.step(detach(None), later(50));
        assert_eq!(life.timer(), Some((mono(650), Timer::Deadline)));
        life.step(stop(graceful(GRACE), false), at(100));
        assert_eq!(life.timer(), Some((mono(105), Timer::Grace)));
        let mut resumed = life_of(life.task, later(101).mono);
        assert_eq!(resumed.timer(), Some((mono(105), Timer::Grace)));
        resumed.step(Input::GraceOver, later(105));
        assert_eq!(resumed.timer(), Some((mono(115), Timer::KillDeadline)));
    }
}

/// T6, T4
#[test]
fn a_wall_clock_that_is_set_makes_no_task_idle_and_keeps_none_from_it() {
    for days in [-1, 1] {
        let later = |seconds| days_ahead(days, at(seconds));
        let mut life = running_with(Spec {
            idle_timeout: Some(10 * SECOND),
            ..plain()
        });
        assert_eq!(life.step(silence(mono(4)), later(10)), []);
        assert_eq!(life.timer(), Some((mono(14), Timer::Silence)));
        assert_ne!(life.step(silence(mono(4)), later(14)), []);
        assert_eq!(life.timer(), Some((mono(19), Timer::Grace)));
    }
}

/// T6, X1: the monotonic clock of the earlier boot was ahead of the present one.
#[test]
fn a_task_detached_in_an_earlier_boot_while_queued_times_out_after_its_start() {
    let mut life = queued();
    assert_eq!(life.step(detach(None), at(1_000_000)), DETACHED);
    let mut resumed = life_of(life.task, mono(0));
    assert_eq!(resumed.timer(), None);
    resumed.step(Input::Admitted, at(0));
    assert_eq!(resumed.timer(), None);
    resumed.step(started(), at(0));
    assert_eq!(resumed.timer(), Some((mono(1), Timer::Deadline)));
}
