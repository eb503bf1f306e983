//! Restarts on failure, at chosen times.

use super::{
    clock::{SECOND, at, mono, plain, running_with},
    *,
};
use crate::task::{AttemptPhase, Restart};

const RESTARTING: [Effect; 2] = [Effect::Record(EventKind::Restarting), Effect::AwaitAttempt];
const ENDED: [Effect; 1] = [Effect::Record(EventKind::Ended)];

fn restarted(max_restarts: Option<u32>) -> Spec {
    Spec {
        restart: Some(Restart {
            delay: SECOND,
            max_delay: 5 * SECOND,
            max_restarts,
            reset_after: 60 * SECOND,
        }),
        timeout: Some(1000 * SECOND),
        ..plain()
    }
}

fn ended(code: i32, seconds: u64) -> Input {
    Input::TreeEnded(TreeEnded {
        leader: Some(LeaderEnd {
            outcome: Outcome::Exited(code),
            at: at(seconds),
        }),
        at: at(seconds).wall,
        proof: ProofResult::Proven(ProofMethod::CgroupEmpty),
        output_bytes: 3,
        capture_error: None,
        abandoned: false,
        cpu: Duration::ZERO,
        max_memory: 0,
    })
}

fn begun(seconds: u64) -> Input {
    Input::Started(Started {
        at: at(seconds),
        by: StartedBy::Leader(Leader {
            pid: 8,
            start_ticks: 2,
            containment: Containment::Cgroup,
        }),
    })
}

/// Lets the present attempt fail, and begins the next one when it is due; returns the delay in seconds.
fn fail_and_begin(life: &mut Life, now: u64) -> u64 {
    assert_eq!(life.step(ended(1, now), at(now)), RESTARTING);
    assert_eq!(life.task.state(), State::Starting);
    let (due, timer) = life.timer().expect("an attempt is due");
    assert_eq!(timer, Timer::Restart);
    let delay = due.since(mono(now)).as_secs();
    assert_eq!(
        life.step(Input::RestartDue, at(now + delay)),
        [Effect::BeginAttempt]
    );
    assert_eq!(
        life.timer(),
        Some((mono(1000), Timer::Deadline)),
        "ordered once"
    );
    let restarted = [Effect::Record(EventKind::Restarted)];
    assert_eq!(life.step(begun(now + delay), at(now + delay)), restarted);
    assert_eq!(life.task.state(), State::Running);
    delay
}

#[test]
fn the_delay_doubles_up_to_its_maximum_and_starts_again_after_a_stable_run() {
    let mut life = running_with(restarted(None));
    let mut now = 1;
    for expected in [1, 2, 4, 5, 5] {
        let delay = fail_and_begin(&mut life, now);
        assert_eq!(delay, expected);
        now += delay + 1;
    }
    assert_eq!(life.task.attempt(), 6);
    now += 60;
    assert_eq!(fail_and_begin(&mut life, now), 1);
    let started = life.task.started.as_ref().expect("it has started");
    assert_eq!(started.at, moment(10), "one task all along");
    assert_eq!(started.leader().map(|leader| leader.pid), Some(8));
}

#[test]
fn a_failure_after_the_last_restart_a_success_and_a_stop_end_the_task() {
    let mut life = running_with(restarted(Some(1)));
    fail_and_begin(&mut life, 1);
    assert_eq!(life.step(ended(9, 3), at(3)), ENDED);
    assert_eq!(end_of(&life), Some((EndState::Failed, EndReason::Exited)));
    let mut life = running_with(restarted(None));
    assert_eq!(life.step(ended(0, 1), at(1)), ENDED);
    let mut life = running_with(restarted(None));
    life.step(stop(graceful(GRACE), false), at(1));
    assert_eq!(life.step(ended(1, 2), at(2)), ENDED);
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
}

/// C7
#[test]
fn orphans_of_a_failed_attempt_are_killed_once_and_without_an_event() {
    let mut life = running_with(restarted(None));
    let exit = |code| Input::LeaderExited {
        end: exited(code),
        output_bytes: 1,
        orphans: Vec::new(),
    };
    assert_eq!(life.step(exit(1), at(1)), [Effect::Kill]);
    assert_eq!(life.stop_order(), Some(StopOrder::Kill));
    assert_eq!(life.step(exit(1), at(1)), []);
    let mut life = running_with(restarted(None));
    let tracked = [Effect::Record(EventKind::LeaderExited)];
    assert_eq!(life.step(exit(0), at(1)), tracked);
}

/// C1
#[test]
fn a_stop_between_two_attempts_signals_nothing_and_keeps_the_last_outcome() {
    let mut life = running_with(restarted(None));
    life.step(ended(7, 1), at(1));
    assert!(!life.is_stopped_between_attempts());
    let stopping = [Effect::Record(EventKind::Stopping)];
    assert_eq!(life.step(stop(graceful(GRACE), false), at(2)), stopping);
    assert!(life.is_stopped_between_attempts());
    assert_eq!((life.timer(), life.stop_order()), (None, None));
    assert_eq!(life.step(Input::RestartDue, at(2)), [], "too late");
    let gone = Input::EndedUnobserved {
        end: LeaderEnd {
            outcome: Outcome::Unknown(String::new()),
            at: at(2),
        },
        method: ProofMethod::Sweep,
        output_bytes: 3,
    };
    assert_eq!(life.step(gone, at(2)), ENDED);
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
    let outcome = life.task.leader_end.map(|end| end.outcome);
    assert_eq!(outcome, Some(Outcome::Exited(7)));
}

#[test]
fn an_attempt_that_cannot_be_started_is_a_failure_and_the_first_start_is_not() {
    let failure = || {
        Input::SpawnFailed(SpawnFailure {
            stage: crate::task::SpawnStage::Exec,
            path: String::new(),
            message: String::new(),
            errno: 2,
        })
    };
    let mut life = created(None);
    life.task.spec = restarted(None).into();
    assert_eq!(life.step(failure(), at(0)), ENDED);
    let mut life = running_with(restarted(None));
    life.step(ended(1, 1), at(1));
    life.step(Input::RestartDue, at(2));
    assert_eq!(life.step(failure(), at(2)), RESTARTING);
    let attempts = life.task.attempts.as_ref().expect("there are some");
    assert_eq!((attempts.latest, attempts.failures), (3, 2));
    assert_eq!(attempts.phase, AttemptPhase::Waits(at(4)));
    assert_eq!(life.task.output_bytes, 3);
}

/// Y1, T6
#[test]
fn an_attempt_begins_without_readiness_and_is_due_by_the_monotonic_clock() {
    let mut life = running_with(restarted(None));
    life.task.ready = Some(Timestamp(1));
    life.step(ended(1, 1), at(1));
    assert_eq!((life.task.ready, life.task.not_ready), (None, None));
    let next = life_of(life.task.clone(), mono(500));
    assert_eq!(
        next.timer(),
        Some((mono(2), Timer::Restart)),
        "for the next server too"
    );
    life.step(Input::RestartPostponed, at(2));
    assert_eq!(life.timer(), Some((mono(3), Timer::Restart)));
}
