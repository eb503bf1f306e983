//! The rules of a life, on every sequence of inputs that a machine could think of.

mod clock;

use proptest::prelude::*;

use super::*;
use crate::task::{
    Command, Containment, Foreground, IdKey, Kind, OnDisconnect, OnForegroundTimeout, ProofResult,
    Queued, Seq, SignalTarget, SpawnStage, Spec, State, StopMode, StopPolicy,
};

const GRACE: Duration = Duration::from_secs(5);

fn newborn(timeout: Option<Duration>) -> Life {
    let spec = Spec {
        timeout,
        ..Spec::new(Command::Argv(vec!["true".to_owned()]))
    };
    let id = IdKey(1).task_id(Kind::Shell, Seq(1));
    Life::new(Task::new(Seq(1), id, spec, Timestamp(0)), Timestamp(0))
}

fn started() -> Input {
    let containment = Containment::Cgroup;
    Input::Started(Started {
        pid: 7,
        start_ticks: 1,
        at: Timestamp(10),
        containment,
    })
}

fn exited(code: i32) -> LeaderEnd {
    LeaderEnd {
        outcome: Outcome::Exited(code),
        at: Timestamp(20),
    }
}

fn tree_ended(code: i32) -> Input {
    Input::TreeEnded(TreeEnded {
        leader: Some(exited(code)),
        at: Timestamp(20),
        method: ProofMethod::CgroupEmpty,
        output_bytes: 3,
        capture_error: None,
        abandoned: false,
        cpu: Duration::ZERO,
        max_memory: 0,
    })
}

fn stop(mode: StopMode, cascade: bool) -> Input {
    Input::StopRequested(StopRequest {
        cause: StopCause::Cancel,
        actor: Actor::default(),
        reason: None,
        mode,
        cascade,
    })
}

fn graceful(grace: Duration) -> StopMode {
    StopMode::Graceful(StopPolicy {
        grace,
        signal: Signal(15),
    })
}

fn running() -> Life {
    let mut life = newborn(None);
    life.step(started(), Timestamp(10));
    life
}

/// One that waits for its turn, and could be timed in every way.
fn waiting() -> Life {
    let mut life = newborn(Some(Duration::from_secs(1)));
    let mut spec = Spec::clone(&life.task.spec);
    spec.foreground = Some(Foreground {
        timeout: Duration::from_secs(1),
        on_timeout: OnForegroundTimeout::Cancel,
        on_disconnect: OnDisconnect::Cancel,
        reattach_window: Duration::from_secs(1),
    });
    life.task.spec = spec.into();
    life.task.queued = Some(Queued { admitted: None });
    life
}

fn end_of(life: &Life) -> Option<(EndState, EndReason)> {
    life.task
        .ended
        .as_ref()
        .map(|ended| (ended.state, ended.reason))
}

/// C1
#[test]
fn exit_zero_after_a_cancel_is_still_cancelled() {
    let mut life = running();
    let effects = life.step(stop(graceful(GRACE), false), Timestamp(100));
    assert_eq!(
        effects,
        [
            Effect::Record(EventKind::Stopping),
            Effect::Signal(Signal(15))
        ]
    );
    assert_eq!(
        life.step(tree_ended(0), Timestamp(200)),
        [Effect::Record(EventKind::Ended)]
    );
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
}

/// T1
#[test]
fn an_end_after_the_deadline_is_timed_out_whatever_the_code() {
    for code in [0, 143] {
        let mut life = newborn(Some(Duration::from_secs(1)));
        life.step(started(), Timestamp(10));
        assert_eq!(life.timer(), Some((Timestamp(1_000_010), Timer::Deadline)));
        life.step(Input::DeadlineReached, Timestamp(1_000_010));
        life.step(tree_ended(code), Timestamp(1_000_020));
        assert_eq!(
            end_of(&life),
            Some((EndState::TimedOut, EndReason::Timeout)),
            "{code}"
        );
    }
}

/// C2
#[test]
fn the_kill_comes_when_the_grace_is_over_and_not_before() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), Timestamp(100));
    assert_eq!(life.timer(), Some((Timestamp(5_000_100), Timer::Grace)));
    assert_eq!(
        life.step(Input::GraceOver, Timestamp(5_000_100)),
        [Effect::Kill]
    );
    assert_eq!(life.timer(), None);
}

/// C16
#[test]
fn force_skips_the_signal_and_cuts_a_grace_short() {
    let mut life = running();
    let effects = life.step(stop(StopMode::Force, false), Timestamp(100));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);

    let mut life = running();
    life.step(stop(graceful(GRACE), false), Timestamp(100));
    let effects = life.step(stop(StopMode::Force, false), Timestamp(200));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);
    assert_eq!(life.step(stop(StopMode::Force, false), Timestamp(300)), []);
}

/// S14
#[test]
fn what_is_cancelled_before_it_runs_is_killed_at_once() {
    let mut life = newborn(None);
    let effects = life.step(stop(graceful(GRACE), false), Timestamp(5));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);
}

/// C12
#[test]
fn with_cascade_the_end_waits_for_the_children() {
    let mut life = running();
    let effects = life.step(stop(StopMode::Force, true), Timestamp(100));
    assert!(effects.contains(&Effect::StopChildren));
    assert_eq!(life.step(tree_ended(0), Timestamp(200)), []);
    let effects = life.step(Input::ChildrenEnded, Timestamp(300));
    assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
}

/// C12, C16
#[test]
fn more_urgency_and_more_reach_change_a_stop_that_is_under_way() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), Timestamp(100));
    let effects = life.step(stop(graceful(GRACE), true), Timestamp(200));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::Stopping), Effect::StopChildren]
    );
    let effects = life.step(stop(StopMode::Force, true), Timestamp(300));
    assert_eq!(
        effects,
        [
            Effect::Record(EventKind::Stopping),
            Effect::StopChildren,
            Effect::Kill
        ]
    );
    assert_eq!(life.step(stop(StopMode::Force, true), Timestamp(400)), []);
}

/// C11
#[test]
fn signals_are_told_in_the_order_in_which_they_went_out() {
    let mut life = running();
    life.step(stop(graceful(Duration::ZERO), false), Timestamp(100));
    let term = SentSignal {
        signal: Signal(15),
        at: Timestamp(150),
        target: SignalTarget::Processes(2),
    };
    life.step(Input::Signalled(term), Timestamp(160));
    let sent = life.task.stop.expect("it is being stopped").signals;
    let numbers: Vec<i32> = sent.iter().map(|sent| sent.signal.0).collect();
    assert_eq!(numbers, [15, 9]);
}

/// C13
#[test]
fn a_stop_that_a_server_left_behind_is_resumed_on_its_own_clock() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), Timestamp(100));
    let resumed = Life::new(life.task.clone(), Timestamp(0));
    assert_eq!(resumed.order(), Some(StopOrder::Ask(Signal(15))));
    assert_eq!(resumed.timer(), Some((Timestamp(5_000_100), Timer::Grace)));
}

#[test]
fn a_failed_capture_is_never_a_success() {
    let mut life = running();
    let Input::TreeEnded(mut end) = tree_ended(0) else {
        unreachable!("it is one")
    };
    end.capture_error = Some("No space left on device".to_owned());
    life.step(Input::TreeEnded(end), Timestamp(100));
    assert_eq!(end_of(&life), Some((EndState::Failed, EndReason::Exited)));
}

/// T3
#[test]
fn the_longest_spans_neither_overflow_nor_fire() {
    let mut life = newborn(Some(Duration::MAX));
    life.step(started(), Timestamp(10));
    assert_eq!(life.timer(), Some((Timestamp(u64::MAX), Timer::Deadline)));
    life.step(stop(graceful(Duration::MAX), false), Timestamp(100));
    assert_eq!(life.timer(), Some((Timestamp(u64::MAX), Timer::Grace)));
}

/// T2
#[test]
fn what_is_over_has_no_timer() {
    let mut life = newborn(Some(GRACE));
    life.step(started(), Timestamp(10));
    life.step(tree_ended(0), Timestamp(100));
    assert_eq!(life.timer(), None);
}

/// X1
#[test]
fn a_turn_is_recorded_before_anything_starts_and_comes_once() {
    let mut life = waiting();
    assert_eq!(life.task.state(), State::Queued);
    let effects = life.step(Input::Admitted, Timestamp(5));
    assert_eq!(effects, [Effect::Record(EventKind::Admitted)]);
    assert_eq!(life.task.state(), State::Starting);
    assert_eq!(life.step(Input::Admitted, Timestamp(6)), []);
    life.step(started(), Timestamp(10));
    assert_eq!(life.task.state(), State::Running);
}

/// X1, T2: its clocks begin with its turn.
#[test]
fn time_does_nothing_to_a_task_that_waits() {
    let mut life = waiting();
    assert_eq!(life.timer(), None);
    life.step(Input::Admitted, Timestamp(5_000_000));
    assert_eq!(life.timer(), Some((Timestamp(6_000_000), Timer::Reattach)));
}

/// X1
#[test]
fn what_is_stopped_while_it_waits_ends_without_a_signal() {
    for mode in [graceful(GRACE), graceful(Duration::ZERO), StopMode::Force] {
        let mut life = waiting();
        assert!(!life.is_forgone());
        let effects = life.step(stop(mode, false), Timestamp(5));
        assert_eq!(effects, [Effect::Record(EventKind::Stopping)]);
        assert_eq!((life.timer(), life.order()), (None, None));
        assert_eq!(life.step(Input::Admitted, Timestamp(6)), [], "too late");
        let resumed = Life::new(life.task.clone(), Timestamp(6));
        assert!(life.is_forgone() && resumed.is_forgone());
        let effects = life.step(Input::Forgone, Timestamp(7));
        assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
        assert_eq!(
            end_of(&life),
            Some((EndState::Cancelled, EndReason::Cancelled))
        );
        let stop = life.task.stop.expect("it was stopped");
        assert!(stop.signals.is_empty(), "nothing was sent");
        let result = stop.proof.map(|proof| proof.result);
        assert_eq!(result, Some(ProofResult::Proven(ProofMethod::NeverStarted)));
        assert_eq!(life.task.leader_end, None);
    }
}

/// C12, X1
#[test]
fn what_waits_and_is_stopped_with_its_children_waits_for_them() {
    let mut life = waiting();
    let effects = life.step(stop(StopMode::Force, true), Timestamp(5));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::Stopping), Effect::StopChildren]
    );
    assert_eq!(life.step(Input::Forgone, Timestamp(6)), []);
    assert!(!life.is_forgone());
    let effects = life.step(Input::ChildrenEnded, Timestamp(7));
    assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
}

#[test]
fn a_task_that_never_waited_is_neither_admitted_nor_forgone() {
    let mut life = running();
    assert_eq!(life.step(Input::Admitted, Timestamp(20)), []);
    assert_eq!(life.step(Input::Forgone, Timestamp(20)), []);
    life.step(stop(graceful(GRACE), false), Timestamp(30));
    assert_eq!(life.step(Input::Forgone, Timestamp(40)), []);
}

fn any_input() -> impl Strategy<Value = Input> {
    prop_oneof![
        Just(started()),
        Just(Input::SpawnFailed(SpawnFailure {
            stage: SpawnStage::Exec,
            path: "/missing".to_owned(),
            message: "No such file or directory".to_owned(),
            errno: 2,
        })),
        (0..3).prop_map(|code| Input::LeaderExited {
            end: exited(code),
            output_bytes: 1,
            others: Vec::new(),
        }),
        (0..3).prop_map(tree_ended),
        any::<bool>().prop_map(|cascade| stop(graceful(GRACE), cascade)),
        any::<bool>().prop_map(|cascade| stop(graceful(Duration::ZERO), cascade)),
        any::<bool>().prop_map(|cascade| stop(StopMode::Force, cascade)),
        Just(Input::Admitted),
        Just(Input::Forgone),
        Just(Input::DeadlineReached),
        Just(Input::Admitted),
        Just(Input::ForegroundOver),
        Just(Input::ClientDisconnected),
        Just(Input::Clients(Clients::Attached)),
        Just(Input::Clients(Clients::None(Timestamp(0)))),
        Just(Input::Wrote),
        Just(Input::Detach(DetachRequest {
            actor: Actor::default(),
            reason: None,
            timeout: None,
        })),
        Just(Input::Silence {
            last_output: Timestamp(3),
            output_bytes: 0,
        }),
        Just(Input::GraceOver),
        Just(Input::ChildrenEnded),
        Just(Input::KillOverdue(Vec::new())),
        Just(Input::Signalled(SentSignal {
            signal: Signal(15),
            at: Timestamp(1),
            target: SignalTarget::Processes(1),
        })),
        Just(Input::Unseen {
            end: LeaderEnd {
                outcome: Outcome::Unknown("gone".to_owned()),
                at: Timestamp(1),
            },
            method: ProofMethod::Sweep,
            output_bytes: 0
        }),
    ]
}

proptest! {
    /// E1, S13
    #[test]
    fn every_life_starts_at_most_once_and_ends_once_and_last(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = newborn(Some(GRACE));
        let mut effects = Vec::new();
        // Whatever happened, in the end the tree is gone, and so are the children.
        let end = [tree_ended(0), Input::ChildrenEnded];
        for (at, input) in inputs.into_iter().chain(end).enumerate() {
            effects.extend(life.step(input, Timestamp(at as u64)));
        }
        let told: Vec<EventKind> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Record(kind) => Some(*kind),
                Effect::Signal(_)
                | Effect::Kill
                | Effect::StopChildren
                | Effect::Spill
                | Effect::Abandon
                | Effect::Listen => None,
            })
            .collect();
        let count = |kind| told.iter().filter(|told| **told == kind).count();
        prop_assert_eq!(told.last(), Some(&EventKind::Ended));
        prop_assert_eq!(count(EventKind::Ended), 1);
        prop_assert!(count(EventKind::Started) <= 1);
        prop_assert_eq!(effects.last(), Some(&Effect::Record(EventKind::Ended)));
        prop_assert_eq!(life.timer(), None);
    }

    /// X1: it is admitted at most once, and never after somebody wanted it stopped; stopped before that,
    /// nothing is ever sent to it.
    #[test]
    fn a_task_that_waits_is_admitted_once_or_never_touched(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = waiting();
        let mut told = Vec::new();
        for (at, input) in inputs.into_iter().enumerate() {
            // Nothing of a tree is heard before there is one.
            let is_of_the_tree = !matches!(
                input,
                Input::Admitted | Input::Forgone | Input::StopRequested(_) | Input::ChildrenEnded
            );
            if life.task.is_waiting() && is_of_the_tree {
                continue;
            }
            let effects = life.step(input, Timestamp(at as u64));
            if life.task.is_waiting() {
                prop_assert!(!effects.iter().any(|effect| matches!(effect, Effect::Signal(_) | Effect::Kill)));
            }
            told.extend(effects);
        }
        let admitted = |effect: &&Effect| **effect == Effect::Record(EventKind::Admitted);
        prop_assert!(told.iter().filter(admitted).count() <= 1);
        let stopped = told.iter().position(|effect| *effect == Effect::Record(EventKind::Stopping));
        let turn = told.iter().position(|effect| *effect == Effect::Record(EventKind::Admitted));
        prop_assert!(stopped.is_none() || turn.is_none() || turn < stopped);
    }

    /// Nothing is done to a task before the intent to do it is durable.
    #[test]
    fn no_signal_goes_out_before_its_intent_is_recorded(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = newborn(Some(GRACE));
        let mut intent = false;
        for (at, input) in inputs.into_iter().enumerate() {
            for effect in life.step(input, Timestamp(at as u64)) {
                match effect {
                    Effect::Record(EventKind::Stopping) => intent = true,
                    Effect::Record(_) | Effect::Spill | Effect::Abandon | Effect::Listen => {}
                    Effect::Signal(_) | Effect::Kill | Effect::StopChildren => prop_assert!(intent),
                }
            }
        }
    }

    /// A terminal state never changes.
    #[test]
    fn nothing_moves_a_task_that_is_over(
        inputs in prop::collection::vec(any_input(), 0..40),
        later in any_input(),
    ) {
        let mut life = newborn(None);
        for (at, input) in inputs.into_iter().chain([tree_ended(1), Input::ChildrenEnded]).enumerate() {
            life.step(input, Timestamp(at as u64));
        }
        let over = life.clone();
        prop_assert_eq!(life.step(later, Timestamp(1000)), []);
        prop_assert_eq!(life, over);
    }
}
