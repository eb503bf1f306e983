//! The rules of the state machine, by example.

mod clock;
mod looks;
mod properties;
mod restarting;
mod working;

use super::*;
use crate::task::{
    Command, Containment, EndReason, EndState, Foreground, IdKey, Kind, Leader, OnDisconnect,
    OnForegroundTimeout, OrphanPolicy, Outcome, OutputLimitCause, ProofResult, Queued, Seq,
    SignalTarget, Spec, StartedBy, State, Stop, StopMode, StopPolicy, Timestamp,
};

const GRACE: Duration = Duration::from_secs(5);
/// The wall clock at the boot of the machine: the two clocks differ.
const BOOT: Timestamp = Timestamp(1_763_000_000_000_000);

/// The moment this many microseconds after the boot.
fn moment(micros: u64) -> Moment {
    Moment {
        wall: Timestamp(BOOT.0 + micros),
        mono: Monotonic(micros),
    }
}

/// The life of a task that has had no worker.
fn life_of(task: Task, now: Monotonic) -> Life {
    Life::new(task, EarlierWork::None, now)
}

fn created(timeout: Option<Duration>) -> Life {
    let spec = Spec {
        timeout,
        ..Spec::new(Command::Argv(vec!["true".to_owned()]))
    };
    let id = IdKey(1).task_id(Kind::Shell, Seq(1));
    life_of(Task::new(Seq(1), id, spec, Timestamp(0)), Monotonic(0))
}

fn started() -> Input {
    Input::Started(Started {
        at: moment(10),
        by: StartedBy::Leader(Leader {
            pid: 7,
            start_ticks: 1,
            containment: Containment::Cgroup,
        }),
    })
}

fn exited(code: i32) -> LeaderEnd {
    LeaderEnd {
        outcome: Outcome::Exited(code),
        at: moment(20),
    }
}

fn tree_ended(code: i32) -> Input {
    Input::TreeEnded(TreeEnded {
        leader: Some(exited(code)),
        at: Timestamp(20),
        proof: ProofResult::Proven(ProofMethod::CgroupEmpty),
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
        ..StopPolicy::default()
    })
}

fn running() -> Life {
    let mut life = created(None);
    life.step(started(), moment(10));
    life
}

/// A queued task with every kind of time limit.
fn queued() -> Life {
    let mut life = created(Some(Duration::from_secs(1)));
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

fn output_limited() -> Input {
    Input::OutputLimited(OutputLimit {
        cause: OutputLimitCause::Policy,
        at: Timestamp(15),
        offset: 1000,
    })
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
    let effects = life.step(stop(graceful(GRACE), false), moment(100));
    assert_eq!(
        effects,
        [
            Effect::Record(EventKind::Stopping),
            Effect::Signal(Signal(15))
        ]
    );
    assert_eq!(
        life.step(tree_ended(0), moment(200)),
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
        let mut life = created(Some(Duration::from_secs(1)));
        life.step(started(), moment(10));
        assert_eq!(life.timer(), Some((Monotonic(1_000_010), Timer::Deadline)));
        life.step(Input::DeadlineReached, moment(1_000_010));
        life.step(tree_ended(code), moment(1_000_020));
        assert_eq!(
            end_of(&life),
            Some((EndState::TimedOut, EndReason::Timeout)),
            "{code}"
        );
    }
}

/// C2
#[test]
fn the_kill_comes_when_the_grace_is_over() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(100));
    assert_eq!(life.timer(), Some((Monotonic(5_000_100), Timer::Grace)));
    assert_eq!(
        life.step(Input::GraceOver, moment(5_000_100)),
        [Effect::Kill]
    );
    let deadline = Monotonic(15_000_100);
    assert_eq!(life.timer(), Some((deadline, Timer::KillDeadline)));
}

fn survivor(pid: i32) -> Survivor {
    Survivor {
        pid,
        parent_pid: 1,
        command: "sleep 60".to_owned(),
        state: "D".to_owned(),
    }
}

fn named_survivors(life: &Life) -> Vec<i32> {
    let survivors = life.task.stop.iter().flat_map(Stop::survivors);
    survivors.map(|survivor| survivor.pid).collect()
}

/// C17
#[test]
fn each_survivor_of_an_overdue_kill_is_named_once() {
    let mut life = running();
    life.step(stop(StopMode::Force, false), moment(100));
    let overdue = [Effect::Record(EventKind::KillOverdue)];
    let input = Input::KillOverdue(vec![survivor(8)]);
    assert_eq!(life.step(input.clone(), moment(200)), overdue);
    assert_eq!(life.timer(), None);
    assert_eq!(life.step(input, moment(300)), []);
    let input = Input::KillOverdue(vec![survivor(8), survivor(9)]);
    assert_eq!(life.step(input, moment(400)), overdue);
    assert_eq!(named_survivors(&life), [8, 9]);
    let input = Input::KillOverdue(vec![survivor(9), survivor(10)]);
    assert_eq!(life.step(input, moment(450)), overdue);
    assert_eq!(named_survivors(&life), [9, 10], "8 is dead");
    life.step(tree_ended(0), moment(500));
    assert!(!life.task.has_survivors());
}

/// C12, C17
#[test]
fn the_survivors_of_a_child_are_named_and_the_own_deadline_stays() {
    let mut life = running();
    life.step(stop(StopMode::Force, true), moment(100));
    let own_deadline = life.timer();
    let child = Input::ChildKillOverdue(vec![survivor(8)]);
    assert_eq!(
        life.step(child, moment(200)),
        [Effect::Record(EventKind::KillOverdue)]
    );
    assert_eq!(life.timer(), own_deadline);
    life.step(Input::KillOverdue(vec![survivor(9)]), moment(300));
    assert_eq!(named_survivors(&life), [9, 8]);
}

/// C17
#[test]
fn an_overdue_kill_without_a_survivor_is_looked_at_again() {
    let mut life = running();
    life.step(stop(StopMode::Force, false), moment(100));
    let empty = Input::KillOverdue(Vec::new());
    assert_eq!(life.step(empty, moment(10_000_100)), []);
    assert!(!life.task.has_survivors());
    let again = Monotonic(11_000_100);
    assert_eq!(life.timer(), Some((again, Timer::KillDeadline)));
}

/// C13, C17: the kill is ordered again after a restart.
#[test]
fn the_kill_deadline_starts_again_with_a_new_server() {
    let mut life = running();
    life.step(stop(StopMode::Force, false), moment(100));
    let resumed = life_of(life.task, Monotonic(60_000_000));
    let deadline = Monotonic(70_000_000);
    assert_eq!(resumed.timer(), Some((deadline, Timer::KillDeadline)));
}

/// C16
#[test]
fn force_skips_the_signal_and_cuts_a_grace_short() {
    let mut life = running();
    let effects = life.step(stop(StopMode::Force, false), moment(100));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);

    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(100));
    let effects = life.step(stop(StopMode::Force, false), moment(200));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);
    assert_eq!(life.step(stop(StopMode::Force, false), moment(300)), []);
}

/// S14
#[test]
fn a_cancel_before_the_start_kills_at_once() {
    let mut life = created(None);
    let effects = life.step(stop(graceful(GRACE), false), moment(5));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);
}

/// C12
#[test]
fn a_cascade_waits_for_the_children() {
    let mut life = running();
    let effects = life.step(stop(StopMode::Force, true), moment(100));
    assert!(effects.contains(&Effect::StopChildren));
    assert_eq!(life.step(tree_ended(0), moment(200)), []);
    let effects = life.step(Input::ChildrenFinished, moment(300));
    assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
}

/// C12, C16
#[test]
fn a_second_request_can_force_a_stop_and_extend_it_to_children() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(100));
    let effects = life.step(stop(graceful(GRACE), true), moment(200));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::Stopping), Effect::StopChildren]
    );
    let effects = life.step(stop(StopMode::Force, true), moment(300));
    assert_eq!(
        effects,
        [
            Effect::Record(EventKind::Stopping),
            Effect::StopChildren,
            Effect::Kill
        ]
    );
    assert_eq!(life.step(stop(StopMode::Force, true), moment(400)), []);
}

/// C2, C18
#[test]
fn a_second_request_with_a_grace_can_only_bring_the_kill_forward() {
    let grace_ends = |life: &Life| life.timer().map(|(at, _)| at);
    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(0));
    let same = life.step(stop(graceful(GRACE), false), moment(1_000_000));
    assert_eq!(
        (same, grace_ends(&life)),
        (vec![], Some(Monotonic(5_000_000)))
    );
    let second = Duration::from_secs(1);
    let effects = life.step(stop(graceful(second), false), moment(2_000_000));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping)]);
    assert_eq!(grace_ends(&life), Some(Monotonic(3_000_000)));
    life.step(stop(graceful(Duration::ZERO), false), moment(2_500_000));
    assert_eq!(grace_ends(&life), Some(Monotonic(2_500_000)));
}

/// C11
#[test]
fn sent_signals_are_listed_in_the_order_of_sending() {
    let mut life = running();
    life.step(stop(graceful(Duration::ZERO), false), moment(100));
    let term = SentSignal {
        signal: Signal(15),
        at: Timestamp(150),
        target: SignalTarget::Processes(2),
    };
    life.step(Input::SignalSent(term), moment(160));
    let sent = life.task.stop.expect("a stop").signals;
    let numbers: Vec<i32> = sent.iter().map(|sent| sent.signal.0).collect();
    assert_eq!(numbers, [15, 9]);
}

/// C13
#[test]
fn a_stop_of_an_earlier_server_keeps_its_grace_deadline() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(100));
    let resumed = life_of(life.task.clone(), Monotonic(0));
    assert_eq!(resumed.stop_order(), Some(StopOrder::Signal(Signal(15))));
    assert_eq!(resumed.timer(), Some((Monotonic(5_000_100), Timer::Grace)));
}

#[test]
fn exit_zero_with_a_capture_error_is_failed() {
    let mut life = running();
    let Input::TreeEnded(mut end) = tree_ended(0) else {
        unreachable!("tree_ended makes this variant")
    };
    end.capture_error = Some("No space left on device".to_owned());
    life.step(Input::TreeEnded(end), moment(100));
    assert_eq!(end_of(&life), Some((EndState::Failed, EndReason::Exited)));
}

/// T3
#[test]
fn the_longest_durations_neither_overflow_nor_fire() {
    let mut life = created(Some(Duration::MAX));
    life.step(started(), moment(10));
    assert_eq!(life.timer(), Some((Monotonic(u64::MAX), Timer::Deadline)));
    life.step(stop(graceful(Duration::MAX), false), moment(100));
    assert_eq!(life.timer(), Some((Monotonic(u64::MAX), Timer::Grace)));
}

/// T2
#[test]
fn a_finished_task_has_no_timer() {
    let mut life = created(Some(GRACE));
    life.step(started(), moment(10));
    life.step(tree_ended(0), moment(100));
    assert_eq!(life.timer(), None);
}

/// X1
#[test]
fn admission_is_recorded_once_and_before_the_start() {
    let mut life = queued();
    assert_eq!(life.task.state(), State::Queued);
    let effects = life.step(Input::Admitted, moment(5));
    assert_eq!(effects, [Effect::Record(EventKind::Admitted)]);
    assert_eq!(life.task.state(), State::Starting);
    assert_eq!(life.step(Input::Admitted, moment(6)), []);
    life.step(started(), moment(10));
    assert_eq!(life.task.state(), State::Running);
}

/// X1, T2: the time limits start with the admission.
#[test]
fn a_queued_task_has_no_timer() {
    let mut life = queued();
    assert_eq!(life.timer(), None);
    life.step(Input::Admitted, moment(5_000_000));
    assert_eq!(life.timer(), Some((Monotonic(6_000_000), Timer::Reattach)));
}

/// X1
#[test]
fn a_stop_of_a_queued_task_sends_no_signal() {
    for mode in [graceful(GRACE), graceful(Duration::ZERO), StopMode::Force] {
        let mut life = queued();
        assert!(!life.is_stopped_while_queued());
        let effects = life.step(stop(mode, false), moment(5));
        assert_eq!(effects, [Effect::Record(EventKind::Stopping)]);
        assert_eq!((life.timer(), life.stop_order()), (None, None));
        assert_eq!(life.step(Input::Admitted, moment(6)), [], "too late");
        let resumed = life_of(life.task.clone(), Monotonic(6));
        assert!(life.is_stopped_while_queued() && resumed.is_stopped_while_queued());
        let effects = life.step(Input::StoppedWhileQueued, moment(7));
        assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
        assert_eq!(
            end_of(&life),
            Some((EndState::Cancelled, EndReason::Cancelled))
        );
        let stop = life.task.stop.expect("a stop");
        assert!(stop.signals.is_empty(), "nothing was sent");
        let result = stop.proof.map(|proof| proof.result);
        assert_eq!(result, Some(ProofResult::Proven(ProofMethod::NeverStarted)));
        assert_eq!(life.task.leader_end, None);
    }
}

/// C12, X1
#[test]
fn a_stopped_queued_task_waits_for_its_children() {
    let mut life = queued();
    let effects = life.step(stop(StopMode::Force, true), moment(5));
    assert_eq!(
        effects,
        [Effect::Record(EventKind::Stopping), Effect::StopChildren]
    );
    assert_eq!(life.step(Input::StoppedWhileQueued, moment(6)), []);
    assert!(!life.is_stopped_while_queued());
    let effects = life.step(Input::ChildrenFinished, moment(7));
    assert_eq!(effects, [Effect::Record(EventKind::Ended)]);
}

#[test]
fn a_running_task_ignores_inputs_of_the_queue() {
    let mut life = running();
    assert_eq!(life.step(Input::Admitted, moment(20)), []);
    assert_eq!(life.step(Input::StoppedWhileQueued, moment(20)), []);
    life.step(stop(graceful(GRACE), false), moment(30));
    assert_eq!(life.step(Input::StoppedWhileQueued, moment(40)), []);
}

/// O8
#[test]
fn a_limit_of_output_is_recorded_once_and_changes_nothing_else() {
    let mut life = running();
    let effects = life.step(output_limited(), moment(20));
    assert_eq!(effects, [Effect::Record(EventKind::OutputLimit)]);
    assert_eq!(life.step(output_limited(), moment(30)), []);
    assert_eq!(life.task.state(), State::Running);
    life.step(tree_ended(0), moment(40));
    let end = (EndState::Completed, EndReason::Exited);
    assert_eq!(end_of(&life), Some(end));
}

/// O8
#[test]
fn a_task_that_its_shim_kills_for_its_output_has_failed() {
    let mut life = running();
    let effects = life.step(Input::OutputKill, moment(20));
    assert_eq!(effects, [Effect::Record(EventKind::Stopping), Effect::Kill]);
    assert_eq!(life.step(Input::OutputKill, moment(30)), []);
    assert_eq!(life.stop_order(), Some(StopOrder::Kill), "sent again");
    life.step(tree_ended(0), moment(40));
    let end = (EndState::Failed, EndReason::OutputLimit);
    assert_eq!(end_of(&life), Some(end));
    let stop = life.task.stop.expect("a stop");
    assert_eq!(stop.signals.len(), 1);
    assert!(stop.proof.is_some());
}

/// O8, C8
#[test]
fn a_task_that_is_being_stopped_keeps_the_cause_of_that() {
    let mut life = running();
    life.step(stop(graceful(GRACE), false), moment(20));
    assert_eq!(life.step(Input::OutputKill, moment(30)), []);
    life.step(tree_ended(0), moment(40));
    let end = (EndState::Cancelled, EndReason::Cancelled);
    assert_eq!(end_of(&life), Some(end));
}
