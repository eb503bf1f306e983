//! What time does to a task, with the clock in hand.

use super::*;
use crate::task::{
    DEFAULT_REATTACH_WINDOW, Foreground, OnDisconnect, OnForegroundTimeout, OnStale, Silence,
};

const SECOND: Duration = Duration::from_secs(1);

/// So many seconds after its start.
fn at(seconds: u64) -> Timestamp {
    Timestamp(10).saturating_add(SECOND * seconds as u32)
}

/// In the foreground for a minute.
fn foreground() -> Foreground {
    Foreground {
        timeout: 60 * SECOND,
        on_timeout: OnForegroundTimeout::Detach,
        on_disconnect: OnDisconnect::Cancel,
        reattach_window: DEFAULT_REATTACH_WINDOW,
    }
}

fn plain() -> Spec {
    Spec::clone(&newborn(None).task.spec)
}

/// A running task with this specification.
fn running_by(spec: Spec) -> Life {
    let mut life = newborn(None);
    life.task.spec = spec.into();
    life.step(started(), Timestamp(10));
    life
}

/// One that runs in the foreground, and is held.
fn held(foreground: Foreground, timeout: Option<Duration>) -> Life {
    let mut life = running_by(Spec {
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
fn the_timeout_counts_from_the_detach_and_the_foreground_deadline_is_gone() {
    for (at_spawn, at_detach) in [
        (Some(600 * SECOND), None),
        (None, Some(600 * SECOND)),
        (Some(5 * SECOND), Some(600 * SECOND)),
    ] {
        let mut life = held(foreground(), at_spawn);
        assert_eq!(life.timer(), Some((at(60), Timer::Foreground)));
        assert_eq!(life.step(detach(at_detach), at(50)), DETACHED);
        assert_eq!(life.timer(), Some((at(650), Timer::Deadline)));
        assert_eq!(life.step(Input::ForegroundOver, at(60)), [], "too late");
    }
}

/// F3
#[test]
fn without_a_timeout_a_detached_task_has_no_end() {
    let mut life = held(foreground(), None);
    life.step(detach(None), at(50));
    assert_eq!(life.timer(), None);
}

/// F4
#[test]
fn at_the_foreground_deadline_it_is_detached_or_timed_out() {
    let mut life = held(foreground(), None);
    assert_eq!(life.step(Input::ForegroundOver, at(60)), DETACHED);
    let detached = life.task.detached.as_ref().expect("it was detached");
    assert_eq!(detached.cause, DetachCause::ForegroundTimeout);

    let cancel = Foreground {
        on_timeout: OnForegroundTimeout::Cancel,
        ..foreground()
    };
    let mut life = held(cancel, None);
    life.step(Input::ForegroundOver, at(60));
    life.step(tree_ended(0), at(61));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::Timeout))
    );
}

/// F6
#[test]
fn whoever_comes_back_within_the_window_keeps_the_task() {
    let mut life = held(foreground(), None);
    life.step(Input::Clients(Clients::None(at(5))), at(5));
    assert_eq!(life.timer(), Some((at(15), Timer::Reattach)));
    life.step(Input::Clients(Clients::Attached), at(14));
    assert_eq!(life.timer(), Some((at(60), Timer::Foreground)));
    assert_eq!(
        life.step(Input::ClientDisconnected, at(15)),
        [],
        "it is not"
    );
}

/// F6
#[test]
fn when_the_holder_stays_away_the_policy_applies_once() {
    let gone = |on_disconnect| {
        let mut life = held(
            Foreground {
                on_disconnect,
                ..foreground()
            },
            None,
        );
        life.step(Input::Clients(Clients::None(at(5))), at(5));
        life
    };
    let mut cancelled = gone(OnDisconnect::Cancel);
    assert_ne!(cancelled.step(Input::ClientDisconnected, at(15)), []);
    assert_eq!(cancelled.step(Input::ClientDisconnected, at(16)), []);
    cancelled.step(tree_ended(0), at(17));
    assert_eq!(
        end_of(&cancelled),
        Some((EndState::Cancelled, EndReason::ClientDisconnected))
    );
    let mut detached = gone(OnDisconnect::Detach);
    assert_eq!(detached.step(Input::ClientDisconnected, at(15)), DETACHED);
    assert_eq!(detached.timer(), None);
    let kept = gone(OnDisconnect::Keep);
    assert_eq!(kept.timer(), Some((at(60), Timer::Foreground)));
}

/// F7
#[test]
fn a_second_detach_is_not_told() {
    let mut life = held(foreground(), None);
    life.step(detach(None), at(1));
    let once = life.clone();
    assert_eq!(life.step(detach(Some(SECOND)), at(2)), []);
    assert_eq!(life, once);
}

/// F11
#[test]
fn a_leader_that_exits_releases_its_holder_and_the_rest_runs_in_the_background() {
    let mut life = held(foreground(), Some(100 * SECOND));
    let exit = Input::LeaderExited {
        end: LeaderEnd {
            outcome: Outcome::Exited(3),
            at: at(7),
        },
        output_bytes: 0,
        others: Vec::new(),
    };
    let effects = life.step(exit, at(7));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::LeaderExited), Effect::Spill]
    );
    assert!(life.task.is_out_of_foreground() && life.task.is_live());
    assert_eq!(life.timer(), Some((at(107), Timer::Deadline)));
}

/// F11
#[test]
fn a_task_whose_rest_is_killed_runs_out_of_no_time() {
    let spec = Spec {
        foreground: Some(foreground()),
        orphan_policy: OrphanPolicy::Kill,
        idle_timeout: Some(SECOND),
        ..plain()
    };
    let mut life = running_by(spec);
    let exit = Input::LeaderExited {
        end: exited(0),
        output_bytes: 0,
        others: Vec::new(),
    };
    let effects = life.step(exit, at(7));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::LeaderExited), Effect::Kill]
    );
    assert_eq!(life.timer(), None);
    assert_eq!(life.order(), Some(StopOrder::Kill), "also after a restart");
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

fn silence(last_output: Timestamp) -> Input {
    Input::Silence {
        last_output,
        output_bytes: 5,
    }
}

/// T4
#[test]
fn output_pushes_the_idle_deadline_back() {
    let spec = Spec {
        idle_timeout: Some(10 * SECOND),
        ..plain()
    };
    let mut life = running_by(spec);
    assert_eq!(life.timer(), Some((at(10), Timer::Silence)));
    assert_eq!(life.step(silence(at(4)), at(10)), [], "it wrote meanwhile");
    assert_eq!(life.timer(), Some((at(14), Timer::Silence)));
    let effects = life.step(silence(at(4)), at(14));
    assert_eq!(effects[0], Effect::Record(EventKind::Stopping));
    life.step(tree_ended(0), at(15));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::IdleTimeout))
    );
}

/// T5
#[test]
fn stale_is_told_once_for_each_silence() {
    const STALE: [Effect; 2] = [Effect::Record(EventKind::Stale), Effect::Listen];
    let mut life = running_by(stale_after(10 * SECOND, OnStale::Notify));
    assert_eq!(life.step(silence(at(0)), at(10)), STALE);
    assert_eq!(life.timer(), None, "nothing to wait for but output");
    assert_eq!(life.step(silence(at(0)), at(30)), [], "the same silence");
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(life.step(Input::Wrote, at(40)), active);
    assert_eq!(life.step(Input::Wrote, at(41)), [], "it is active already");
    assert_eq!(life.timer(), Some((at(50), Timer::Silence)));
    assert_eq!(life.step(silence(at(41)), at(50)), []);
    assert_eq!(life.step(silence(at(41)), at(51)), STALE);
}

/// T5
#[test]
fn a_stale_task_is_stopped_if_that_was_asked_for() {
    let mut life = running_by(stale_after(10 * SECOND, OnStale::Cancel));
    let told: Vec<Effect> = life.step(silence(at(0)), at(10));
    assert!(told.contains(&Effect::Record(EventKind::Stale)));
    assert!(told.contains(&Effect::Signal(Signal(15))));
    life.step(tree_ended(0), at(11));
    assert_eq!(
        end_of(&life),
        Some((EndState::TimedOut, EndReason::IdleTimeout))
    );
}

/// T3
#[test]
fn endless_spans_are_never_over() {
    let mut endless = foreground();
    endless.timeout = Duration::MAX;
    let mut life = held(endless, Some(Duration::MAX));
    assert_eq!(life.timer(), Some((Timestamp(u64::MAX), Timer::Foreground)));
    life.step(detach(None), at(1));
    assert_eq!(life.timer(), Some((Timestamp(u64::MAX), Timer::Deadline)));
}
