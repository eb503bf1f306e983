//! Looks at a task's readiness and at the input that it waits for.

use super::{
    clock::{SECOND, at, mono, plain, running_with, silence},
    *,
};
use crate::task::{
    Input as InputPolicy, OnReadyTimeout, OnStale, Probe, Readiness, Ready, Silence,
};

const MILLI: Duration = Duration::from_millis(1);
const READY: [Effect; 1] = [Effect::Record(EventKind::Ready)];
const NOT_READY: [Effect; 1] = [Effect::Record(EventKind::NotReady)];

fn ready(timeout: Option<Duration>, on_timeout: OnReadyTimeout) -> Spec {
    let ready = Ready {
        probe: Probe::Port(None),
        interval: SECOND,
        timeout,
        on_timeout,
    };
    Spec {
        ready: Some(ready),
        ..plain()
    }
}

fn probed(life: &mut Life, result: Probed, seconds: u64) -> Vec<Effect> {
    assert_eq!(life.step(Input::ProbeDue, at(seconds)), [Effect::Probe]);
    life.step(Input::Probed(result), at(seconds))
}

/// Y1
#[test]
fn looks_begin_fast_and_slow_down_to_the_interval() {
    let mut life = running_with(ready(None, OnReadyTimeout::Notify));
    let mut now = mono(0);
    for delay in [25, 50, 100, 200, 400, 800, 1000, 1000] {
        let due = now.saturating_add(delay * MILLI);
        assert_eq!(life.timer(), Some((due, Timer::Probe)));
        now = due;
        let moment = Moment {
            wall: Timestamp(0),
            mono: now,
        };
        assert_eq!(life.step(Input::ProbeDue, moment), [Effect::Probe]);
        assert_eq!(life.timer(), None, "one look at a time");
        assert_eq!(life.step(Input::Probed(Probed::NotYet), moment), []);
    }
    assert_eq!(life.task.readiness(), Some(Readiness::Pending));
}

/// Y1
#[test]
fn a_task_is_ready_once_and_is_not_looked_at_again() {
    let mut life = running_with(ready(Some(9 * SECOND), OnReadyTimeout::Cancel));
    assert!(!life.task.is_readiness_decided());
    assert_eq!(probed(&mut life, Probed::Ready, 1), READY);
    assert_eq!(life.task.readiness(), Some(Readiness::Ready));
    assert!(life.task.is_readiness_decided());
    assert_eq!(life.timer(), None);
    for late in [
        Input::Probed(Probed::Ready),
        Input::ProbeDue,
        Input::ReadyTimedOut,
    ] {
        assert_eq!(life.step(late, at(9)), []);
    }
    life.step(tree_ended(0), at(10));
    assert_eq!(life.task.readiness(), Some(Readiness::Ready), "for good");
}

/// Y2
#[test]
fn a_task_that_is_not_ready_in_time_says_so_once_and_may_become_ready() {
    let mut life = running_with(ready(Some(2 * SECOND), OnReadyTimeout::Notify));
    assert_eq!(life.step(Input::ProbeDue, at(1)), [Effect::Probe]);
    assert_eq!(life.timer(), Some((mono(2), Timer::Ready)));
    assert_eq!(life.step(Input::ReadyTimedOut, at(2)), NOT_READY);
    assert_eq!(life.task.readiness(), Some(Readiness::NotReady));
    assert_eq!(life.step(Input::ReadyTimedOut, at(3)), []);
    assert_eq!(life.step(Input::Probed(Probed::NotYet), at(3)), []);
    assert_eq!(probed(&mut life, Probed::Ready, 4), READY);
    assert_eq!(life.task.readiness(), Some(Readiness::Ready));
}

/// Y2
#[test]
fn a_task_that_is_not_ready_in_time_is_stopped_where_the_policy_is_cancel() {
    let mut life = running_with(ready(Some(2 * SECOND), OnReadyTimeout::Cancel));
    let effects = life.step(Input::ReadyTimedOut, at(2));
    assert_eq!(
        effects[..2],
        [
            Effect::Record(EventKind::NotReady),
            Effect::Record(EventKind::Stopping)
        ]
    );
    assert_eq!(life.step(Input::Probed(Probed::Ready), at(2)), []);
    life.step(tree_ended(0), at(3));
    let end = (EndState::TimedOut, EndReason::NotReady);
    assert_eq!(end_of(&life), Some(end));
}

/// Y2, T6
#[test]
fn the_time_to_become_ready_counts_from_the_start_across_a_restart_of_the_server() {
    let mut life = running_with(ready(Some(9 * SECOND), OnReadyTimeout::Notify));
    probed(&mut life, Probed::NotYet, 1);
    let mut next = Life::new(life.task, EarlierWork::None, mono(5));
    let (due, timer) = next.timer().expect("a look");
    assert_eq!(timer, Timer::Probe);
    assert!(due < mono(5), "at once");
    assert_eq!(next.step(Input::ProbeDue, at(5)), [Effect::Probe]);
    assert_eq!(next.timer(), Some((mono(9), Timer::Ready)));
    next.step(Input::ReadyTimedOut, at(9));
    let next = Life::new(next.task, EarlierWork::None, mono(10));
    assert_eq!(next.task.readiness(), Some(Readiness::NotReady), "recorded");
    assert_ne!(next.timer().map(|(_, timer)| timer), Some(Timer::Ready));
}

/// Y1
#[test]
fn a_stop_or_an_end_without_tracked_orphans_ends_the_looks() {
    let mut stopped = running_with(ready(None, OnReadyTimeout::Notify));
    stopped.step(stop(graceful(GRACE), false), at(1));
    assert_eq!(stopped.task.readiness(), Some(Readiness::NotReady));
    let left = |orphan_policy| {
        let mut life = running_with(Spec {
            orphan_policy,
            ..ready(None, OnReadyTimeout::Notify)
        });
        let exited = Input::LeaderExited {
            end: exited(0),
            output_bytes: 0,
            orphans: Vec::new(),
        };
        life.step(exited, at(1));
        life
    };
    for mut life in [
        stopped,
        left(OrphanPolicy::Kill),
        left(OrphanPolicy::Abandon),
    ] {
        assert_eq!(life.awaited_readiness(), None);
        assert_eq!(life.step(Input::ProbeDue, at(2)), []);
        assert_eq!(life.step(Input::Probed(Probed::Ready), at(2)), []);
    }
    let mut daemon = left(OrphanPolicy::Track);
    assert_eq!(probed(&mut daemon, Probed::Ready, 2), READY, "a daemon");
}

fn notify_after(span: Duration) -> Spec {
    Spec {
        input: Some(InputPolicy {
            notify_after: Some(span),
        }),
        ..plain()
    }
}

fn look_due(last_output: Monotonic) -> Input {
    Input::StdinLookDue {
        last_output: Some(last_output),
        output_bytes: 5,
    }
}

const NEEDS_INPUT: [Effect; 2] = [Effect::Record(EventKind::NeedsInput), Effect::FollowOutput];

#[test]
fn a_silent_task_is_looked_at_again_after_twice_the_silence() {
    let mut life = running_with(notify_after(2 * SECOND));
    for due in [2, 4, 8, 16] {
        assert_eq!(life.timer(), Some((mono(due), Timer::InputLook)));
        assert_eq!(
            life.step(look_due(mono(0)), at(due)),
            [Effect::LookForInput]
        );
    }
    assert_eq!(
        life.step(look_due(mono(31)), at(32)),
        [],
        "output: a new silence"
    );
    assert_eq!(life.timer(), Some((mono(33), Timer::InputLook)));
    assert_eq!(
        life.step(look_due(mono(31)), at(33)),
        [Effect::LookForInput]
    );
}

#[test]
fn needs_input_is_told_once_for_each_silence_and_cleared_by_output() {
    let mut life = running_with(notify_after(2 * SECOND));
    life.step(look_due(mono(0)), at(2));
    assert_eq!(life.step(Input::StdinAwaited, at(2)), NEEDS_INPUT);
    assert!(life.task.needs_input.is_some());
    assert_eq!(life.step(Input::StdinAwaited, at(3)), []);
    assert_eq!(life.timer(), None, "only output ends the silence");
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(life.step(Input::OutputWritten, at(5)), active);
    assert!(life.task.needs_input.is_none());
    assert_eq!(life.timer(), Some((mono(7), Timer::InputLook)));
    assert_eq!(life.step(look_due(mono(5)), at(7)), [Effect::LookForInput]);
    assert_eq!(life.step(Input::StdinAwaited, at(7)), NEEDS_INPUT);
    life.step(tree_ended(0), at(8));
    assert!(
        life.task.needs_input.is_none(),
        "a finished task needs none"
    );
}

/// I1
#[test]
fn a_task_that_is_given_input_needs_none_until_it_waits_again() {
    let mut life = running_with(notify_after(2 * SECOND));
    assert_eq!(life.step(Input::StdinGiven, at(1)), []);
    life.step(look_due(mono(0)), at(2));
    assert_eq!(life.step(Input::StdinAwaited, at(2)), NEEDS_INPUT);
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(life.step(Input::StdinGiven, at(3)), active);
    assert!(life.task.needs_input.is_none());
    assert_eq!(life.timer(), Some((mono(4), Timer::InputLook)));
    assert_eq!(life.step(look_due(mono(0)), at(4)), [Effect::LookForInput]);
    assert_eq!(life.step(Input::StdinAwaited, at(4)), NEEDS_INPUT);
}

/// T5
#[test]
fn a_task_that_becomes_stale_is_looked_at_once() {
    let mut life = running_with(Spec {
        silence: Some(Silence {
            stale_after: 3 * SECOND,
            on_stale: OnStale::Notify,
        }),
        ..plain()
    });
    let effects = life.step(silence(mono(0)), at(3));
    assert_eq!(effects.last(), Some(&Effect::LookForInput));
    assert_eq!(life.step(Input::StdinAwaited, at(3)), NEEDS_INPUT);
    assert_eq!(life.timer(), None);
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(
        life.step(Input::OutputWritten, at(4)),
        active,
        "one for both"
    );
    life.step(stop(graceful(GRACE), false), at(5));
    assert_eq!(life.step(Input::StdinAwaited, at(5)), []);
}
