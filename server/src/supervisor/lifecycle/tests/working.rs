//! The rules for workers: leases, progress, results, and the soft phase of a stop.

use uuid::Uuid;

use super::*;
use crate::task::{OnStale, Silence, WorkerStatus};

const LEASE: Duration = Duration::from_secs(30);
const SOFT: Duration = Duration::from_secs(10);
const SECOND: u64 = 1_000_000;

fn hosted_task() -> Task {
    let spec = Spec::new(Command::Hosted { lease: LEASE });
    let id = IdKey(1).task_id(Kind::Hosted, Seq(1));
    Task::new(Seq(1), id, spec, Timestamp(0))
}

fn started_by_worker() -> Input {
    let boot = Uuid::from_u128(7);
    Input::Started(Started {
        at: moment(10),
        by: StartedBy::Worker { boot },
    })
}

pub(super) fn hosted() -> Life {
    let mut life = life_of(hosted_task(), Monotonic(0));
    life.step(started_by_worker(), moment(10));
    life
}

/// A worker that is connected and was heard at this time.
fn connected(heard: u64) -> WorkerSeen {
    WorkerSeen {
        connection: Connection::Connected,
        heard: Some(Monotonic(heard)),
        ..WorkerSeen::default()
    }
}

fn with_worker(mut life: Life) -> Life {
    life.see_worker(connected(0));
    life
}

pub(super) fn result(status: WorkerStatus) -> Input {
    Input::WorkerResult(WorkerResult {
        status,
        text: "the answer".to_owned(),
        data: vec![1, 2],
        at: Moment::default(),
    })
}

fn progress(intent: &str) -> Input {
    Input::Progress(Arc::new(Progress {
        intent: intent.to_owned(),
        ..Progress::default()
    }))
}

const ENDED: [Effect; 1] = [Effect::Record(EventKind::Ended)];
const STOPPING: Effect = Effect::Record(EventKind::Stopping);
const PROGRESS: [Effect; 1] = [Effect::Record(EventKind::Progress)];

/// P2, P7
#[test]
fn a_result_ends_a_hosted_task_with_its_status() {
    for (status, end) in [
        (WorkerStatus::Ok, (EndState::Completed, EndReason::Exited)),
        (
            WorkerStatus::Failed,
            (EndState::Failed, EndReason::WorkerFailed),
        ),
        (
            WorkerStatus::Cancelled,
            (EndState::Cancelled, EndReason::Cancelled),
        ),
    ] {
        let mut life = hosted();
        assert_eq!(life.step(result(status), moment(100)), ENDED);
        assert_eq!(end_of(&life), Some(end));
        let outcome = life.task.leader_end.map(|end| end.outcome);
        assert_eq!(outcome, Some(Outcome::Worker(status)));
        let delivered = life.task.result.expect("it is kept");
        assert_eq!(
            (&*delivered.text, delivered.at),
            ("the answer", moment(100))
        );
    }
}

/// P7
#[test]
fn a_result_during_a_stop_is_kept_and_the_task_is_cancelled() {
    let mut life = with_worker(hosted());
    life.step(stop(graceful(GRACE), false), moment(100));
    assert_eq!(life.step(result(WorkerStatus::Ok), moment(200)), ENDED);
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
    assert!(life.task.result.is_some());
    let stop = life.task.stop.expect("a stop");
    assert!(!stop.killed, "it was not forced");
    let result = stop.proof.map(|proof| proof.result);
    assert!(matches!(result, Some(ProofResult::Unproven(_))));
}

/// P4
#[test]
fn a_hosted_task_whose_worker_does_not_react_is_ended_after_both_graces() {
    let mut life = with_worker(hosted());
    assert_eq!(
        life.step(stop(graceful(GRACE), false), moment(100)),
        [STOPPING]
    );
    assert_eq!(life.stop_order(), None, "there is no shim");
    let soft = Monotonic(100).saturating_add(SOFT);
    assert_eq!(life.timer(), Some((soft, Timer::SoftGrace)));
    let over = moment(soft.0);
    assert_eq!(life.step(Input::GraceOver, over), [], "too early");
    assert_eq!(life.step(Input::SoftGraceOver, over), [STOPPING]);
    let grace = soft.saturating_add(GRACE);
    assert_eq!(life.timer(), Some((grace, Timer::Grace)));
    assert_eq!(life.step(Input::GraceOver, moment(grace.0)), ENDED);
    let stop = life.task.stop.as_ref().expect("a stop");
    assert!(stop.killed && stop.signals.is_empty());
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
}

/// P4, C16
#[test]
fn a_forced_stop_of_a_hosted_task_ends_it_at_once() {
    for soft in [false, true] {
        let mut life = match soft {
            true => with_worker(hosted()),
            false => hosted(),
        };
        if soft {
            life.step(stop(graceful(GRACE), false), moment(50));
        }
        assert_eq!(
            life.step(stop(StopMode::Force, false), moment(100)),
            [STOPPING]
        );
        let (due, timer) = life.timer().expect("it ends");
        assert!(due <= Monotonic(100) && timer == Timer::Grace);
        assert_eq!(life.step(Input::GraceOver, moment(101)), ENDED);
    }
}

/// P3
#[test]
fn a_worker_that_is_silent_past_its_lease_is_lost_once() {
    let mut life = hosted();
    life.see_worker(connected(5 * SECOND));
    let due = Monotonic(35 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Lease)));
    assert_eq!(
        life.step(Input::LeaseDue, moment(34 * SECOND)),
        [],
        "too early"
    );
    life.see_worker(connected(20 * SECOND));
    assert_eq!(
        life.step(Input::LeaseDue, moment(35 * SECOND)),
        [],
        "it was heard"
    );
    let due = Monotonic(50 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Lease)));
    assert_eq!(life.step(Input::LeaseDue, moment(50 * SECOND)), ENDED);
    assert_eq!(end_of(&life), Some((EndState::Lost, EndReason::WorkerLost)));
    assert_eq!(life.step(Input::LeaseDue, moment(51 * SECOND)), []);
    assert_eq!(life.timer(), None);
}

/// P3: a server that was stopped itself has not read what the worker sent meanwhile.
#[test]
fn a_lease_that_the_server_looks_at_too_late_starts_again() {
    let mut life = hosted();
    assert_eq!(life.step(Input::LeaseDue, moment(90 * SECOND)), []);
    let due = Monotonic(120 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Lease)));
    assert_eq!(life.step(Input::LeaseDue, moment(120 * SECOND)), ENDED);
}

/// P3, R1
#[test]
fn the_lease_starts_again_with_a_new_server_and_when_it_accepts_workers() {
    let life = hosted();
    let mut resumed = life_of(life.task, Monotonic(100 * SECOND));
    let due = Monotonic(130 * SECOND);
    assert_eq!(resumed.timer(), Some((due, Timer::Lease)));
    resumed.step(Input::WorkersAccepted, moment(110 * SECOND));
    let due = Monotonic(140 * SECOND);
    assert_eq!(resumed.timer(), Some((due, Timer::Lease)));
}

/// P3, X1
#[test]
fn the_worker_of_a_queued_task_can_be_lost() {
    let mut task = hosted_task();
    task.queued = Some(Queued { admitted: None });
    let mut life = life_of(task, Monotonic(0));
    let due = Monotonic(30 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Lease)));
    assert_eq!(life.step(Input::LeaseDue, moment(30 * SECOND)), ENDED);
    assert_eq!(end_of(&life), Some((EndState::Lost, EndReason::WorkerLost)));
}

/// P3: the cause of a stop decides before the worker's end.
#[test]
fn a_worker_that_is_lost_during_a_stop_leaves_a_cancelled_task() {
    let mut life = hosted();
    let mode = graceful(2 * LEASE);
    life.step(stop(mode, false), moment(100));
    assert_eq!(life.timer(), Some((Monotonic(30 * SECOND), Timer::Lease)));
    life.step(Input::LeaseDue, moment(30 * SECOND));
    assert_eq!(
        end_of(&life),
        Some((EndState::Cancelled, EndReason::Cancelled))
    );
}

/// C12
#[test]
fn a_hosted_task_waits_for_its_children() {
    let mut life = with_worker(hosted());
    let effects = life.step(stop(graceful(GRACE), true), moment(100));
    assert_eq!(effects, [STOPPING, Effect::StopChildren]);
    assert_eq!(life.step(result(WorkerStatus::Cancelled), moment(200)), []);
    assert_eq!(life.timer(), None);
    assert_eq!(life.step(Input::ChildrenFinished, moment(300)), ENDED);
    assert!(life.task.result.is_some());
}

/// C18
#[test]
fn a_worker_that_listens_has_a_soft_phase_before_the_signal() {
    let mut life = with_worker(running());
    assert_eq!(
        life.step(stop(graceful(GRACE), false), moment(100)),
        [STOPPING]
    );
    assert_eq!(life.stop_order(), None, "no signal yet");
    let soft = Monotonic(100).saturating_add(SOFT);
    assert_eq!(life.timer(), Some((soft, Timer::SoftGrace)));
    let effects = life.step(Input::SoftGraceOver, moment(soft.0));
    assert_eq!(effects, [STOPPING, Effect::Signal(Signal(15))]);
    let grace = soft.saturating_add(GRACE);
    assert_eq!(life.timer(), Some((grace, Timer::Grace)));
    assert_eq!(life.step(Input::GraceOver, moment(grace.0)), [Effect::Kill]);
}

/// C18
#[test]
fn a_task_without_a_listener_gets_its_signal_at_once() {
    let signal = [STOPPING, Effect::Signal(Signal(15))];
    let mut life = running();
    assert_eq!(life.step(stop(graceful(GRACE), false), moment(100)), signal);

    let asked = |asked: u64| {
        let mut life = running();
        life.see_worker(WorkerSeen {
            asked: Some(Monotonic(asked)),
            ..WorkerSeen::default()
        });
        life.step(stop(graceful(GRACE), false), moment(100 * SECOND))
    };
    assert_eq!(asked(99 * SECOND), [STOPPING], "it has just asked");
    assert_eq!(asked(40 * SECOND), signal, "a minute ago");

    let mut life = with_worker(running());
    let none = StopMode::Graceful(StopPolicy {
        soft_grace: Duration::ZERO,
        ..StopPolicy::default()
    });
    assert_eq!(life.step(stop(none, false), moment(100)), signal);
}

/// C18, P7
#[test]
fn a_result_ends_the_soft_phase_and_survives_the_kill() {
    let mut life = with_worker(running());
    life.step(stop(graceful(GRACE), false), moment(100));
    let effects = life.step(result(WorkerStatus::Cancelled), moment(200));
    assert_eq!(effects, [STOPPING, Effect::Signal(Signal(15))]);
    let grace = Monotonic(200).saturating_add(GRACE);
    assert_eq!(life.timer(), Some((grace, Timer::Grace)));
    life.step(Input::GraceOver, moment(grace.0));
    life.step(tree_ended(0), moment(grace.0 + 1));
    assert!(life.task.result.is_some(), "partial results survive");
    let outcome = life.task.leader_end.map(|end| end.outcome);
    assert_eq!(outcome, Some(Outcome::Exited(0)));
}

/// C13, C18
#[test]
fn the_phases_of_a_stop_go_on_with_a_new_server() {
    let mut life = with_worker(running());
    life.step(stop(graceful(GRACE), false), moment(100));
    let soft = Monotonic(100).saturating_add(SOFT);
    let resumed = life_of(life.task.clone(), Monotonic(500));
    assert_eq!(resumed.timer(), Some((soft, Timer::SoftGrace)));
    assert_eq!(resumed.stop_order(), None);
    life.step(Input::SoftGraceOver, moment(soft.0));
    let resumed = life_of(life.task, Monotonic(500));
    assert_eq!(resumed.stop_order(), Some(StopOrder::Signal(Signal(15))));
    let grace = soft.saturating_add(GRACE);
    assert_eq!(resumed.timer(), Some((grace, Timer::Grace)));
}

/// C16, C18
#[test]
fn force_ends_the_soft_phase() {
    let mut life = with_worker(running());
    life.step(stop(graceful(GRACE), false), moment(100));
    let effects = life.step(stop(StopMode::Force, false), moment(200));
    assert_eq!(effects, [STOPPING, Effect::Kill]);
    assert_eq!(life.step(Input::SoftGraceOver, moment(300)), []);
    let soft = life.task.stop.and_then(|stop| stop.soft).expect("it began");
    assert_eq!(soft.over, Some(moment(200)));
}

/// P9
#[test]
fn progress_is_announced_at_once_then_once_a_second_and_never_dropped() {
    let mut life = running();
    assert_eq!(life.step(progress("a"), moment(100)), PROGRESS);
    assert_eq!(life.step(progress("b"), moment(200)), []);
    assert_eq!(life.step(progress("c"), moment(300)), []);
    let due = Monotonic(100 + SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Progress)));
    assert_eq!(life.step(Input::ProgressDue, moment(due.0)), PROGRESS);
    let intent = life
        .task
        .progress
        .as_ref()
        .map(|progress| &*progress.intent);
    assert_eq!(intent, Some("c"), "the latest");
    assert_eq!(life.timer(), None, "nothing is left to announce");
    assert_eq!(life.step(progress("d"), moment(5 * SECOND)), PROGRESS);
}

/// P9
#[test]
fn the_end_carries_progress_that_was_not_announced() {
    let mut life = running();
    life.step(progress("a"), moment(100));
    life.step(progress("b"), moment(200));
    life.step(tree_ended(0), moment(300));
    let intent = life
        .task
        .progress
        .as_ref()
        .map(|progress| &*progress.intent);
    assert_eq!(intent, Some("b"));
    assert_eq!(life.step(Input::ProgressDue, moment(400)), []);
}

/// P9, R1
#[test]
fn progress_that_an_earlier_server_recorded_is_announced_by_the_next_one() {
    let recorded = Some(Arc::new(Progress {
        intent: "late".to_owned(),
        ..Progress::default()
    }));
    let earlier = EarlierWork::Had {
        progress: recorded.clone(),
    };
    let life = running();
    let mut resumed = Life::new(life.task, earlier.clone(), Monotonic(700));
    assert_eq!(resumed.timer(), Some((Monotonic(700), Timer::Progress)));
    assert_eq!(resumed.step(Input::ProgressDue, moment(700)), PROGRESS);
    assert_eq!(resumed.task.progress, recorded);
    let again = Life::new(resumed.task, earlier, Monotonic(800));
    assert_eq!(again.timer(), None, "it is known");
}

fn with_limits(task: &mut Task) {
    let spec = Spec {
        idle_timeout: Some(Duration::from_secs(20)),
        silence: Some(Silence {
            stale_after: Duration::from_secs(10),
            on_stale: OnStale::Notify,
        }),
        ..Spec::clone(&task.spec)
    };
    task.spec = spec.into();
}

fn silence() -> Input {
    Input::Silence {
        last_output: None,
        output_bytes: 0,
    }
}

/// T4, T5
#[test]
fn heartbeats_and_progress_push_back_silence_and_signs_of_presence_do_not() {
    let mut life = hosted();
    with_limits(&mut life.task);
    let beat = |active: u64, heard: u64| WorkerSeen {
        active: Some(Monotonic(active)),
        ..connected(heard)
    };
    life.see_worker(beat(5 * SECOND, 9 * SECOND));
    let due = Monotonic(15 * SECOND);
    assert_eq!(
        life.timer(),
        Some((due, Timer::Silence)),
        "presence is no activity"
    );
    assert_eq!(life.step(silence(), moment(11 * SECOND)), []);
    let stale = [Effect::Record(EventKind::Stale), Effect::FollowOutput];
    assert_eq!(life.step(silence(), moment(15 * SECOND)), stale);
    let active = [Effect::Record(EventKind::Active)];
    assert_eq!(life.step(Input::Activity, moment(16 * SECOND)), active);
    let due = Monotonic(26 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Silence)));
    life.step(progress("reads"), moment(20 * SECOND));
    life.see_worker(connected(25 * SECOND));
    let due = Monotonic(30 * SECOND);
    assert_eq!(life.timer(), Some((due, Timer::Silence)));
}

/// T4, P9
#[test]
fn progress_of_a_stale_task_says_that_it_is_active() {
    let mut life = hosted();
    with_limits(&mut life.task);
    life.step(silence(), moment(11 * SECOND));
    assert!(life.task.stale.is_some());
    let effects = life.step(progress("reads"), moment(12 * SECOND));
    let both = [EventKind::Active, EventKind::Progress].map(Effect::Record);
    assert_eq!(effects, both);
    assert!(life.task.stale.is_none());
}

/// T4, R1: heartbeats are not recorded, so a new server cannot know the latest one.
#[test]
fn a_new_server_counts_as_activity_of_a_task_that_had_a_worker() {
    let (mut hosted, mut shell) = (hosted(), running());
    with_limits(&mut hosted.task);
    with_limits(&mut shell.task);
    let now = Monotonic(100 * SECOND);
    let silent_at = |life: &Life| life.timer().filter(|(_, timer)| *timer == Timer::Silence);
    let resumed = life_of(hosted.task, now);
    assert_eq!(
        silent_at(&resumed),
        Some((Monotonic(110 * SECOND), Timer::Silence))
    );
    let earlier = EarlierWork::Had { progress: None };
    let resumed = Life::new(shell.task.clone(), earlier, now);
    assert_eq!(
        silent_at(&resumed),
        Some((Monotonic(110 * SECOND), Timer::Silence))
    );
    let never_had_one = life_of(shell.task, now);
    assert!(silent_at(&never_had_one).is_some_and(|(due, _)| due < now));
}

/// P7
#[test]
fn a_task_has_one_result() {
    let mut life = running();
    assert_eq!(life.step(result(WorkerStatus::Ok), moment(100)), PROGRESS);
    assert_eq!(life.step(result(WorkerStatus::Failed), moment(200)), []);
    let kept = life.task.result.as_ref().map(|result| result.status);
    assert_eq!(kept, Some(WorkerStatus::Ok));
    life.step(tree_ended(3), moment(300));
    assert_eq!(end_of(&life), Some((EndState::Failed, EndReason::Exited)));
}
