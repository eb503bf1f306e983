//! The rules of the state machine, on random sequences of inputs.

use proptest::prelude::*;

use super::{
    working::{hosted, result},
    *,
};
use crate::task::{
    Input as InputPolicy, OnReadyTimeout, OnStale, Probe, Ready, Silence, SpawnStage, WorkerStatus,
};

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
            orphans: Vec::new(),
        }),
        (0..3).prop_map(tree_ended),
        any::<bool>().prop_map(|cascade| stop(graceful(GRACE), cascade)),
        any::<bool>().prop_map(|cascade| stop(graceful(Duration::ZERO), cascade)),
        any::<bool>().prop_map(|cascade| stop(StopMode::Force, cascade)),
        Just(Input::Admitted),
        Just(Input::StoppedWhileQueued),
        Just(Input::DeadlineReached),
        Just(Input::Admitted),
        Just(Input::ForegroundTimedOut),
        Just(Input::ClientDisconnected),
        Just(Input::Clients(Clients::Attached)),
        Just(Input::Clients(Clients::None(Monotonic(0)))),
        Just(Input::OutputWritten),
        Just(Input::StdinGiven),
        Just(output_limited()),
        Just(Input::OutputKill),
        Just(Input::Activity),
        Just(Input::Detach(DetachRequest {
            actor: Actor::default(),
            reason: None,
            timeout: None,
        })),
        Just(Input::Silence {
            last_output: Some(Monotonic(3)),
            output_bytes: 0,
        }),
        Just(Input::ProbeDue),
        Just(Input::Probed(Probed::Ready)),
        Just(Input::Probed(Probed::NotYet)),
        Just(Input::ReadyTimedOut),
        Just(Input::StdinLookDue {
            last_output: Some(Monotonic(3)),
            output_bytes: 0,
        }),
        Just(Input::StdinAwaited),
        Just(Input::GraceOver),
        Just(Input::SoftGraceOver),
        Just(Input::LeaseDue),
        Just(Input::WorkersAccepted),
        Just(Input::ProgressDue),
        Just(Input::Progress(Arc::default())),
        Just(result(WorkerStatus::Ok)),
        Just(Input::ChildrenFinished),
        Just(Input::KillOverdue(Vec::new())),
        (10..12).prop_map(|pid| Input::ChildKillOverdue(vec![survivor(pid)])),
        (8..10).prop_map(|pid| Input::KillOverdue(vec![survivor(pid)])),
        Just(Input::SignalSent(SentSignal {
            signal: Signal(15),
            at: Timestamp(1),
            target: SignalTarget::Processes(1),
        })),
        Just(Input::EndedUnobserved {
            end: LeaderEnd {
                outcome: Outcome::Unknown("gone".to_owned()),
                at: moment(1),
            },
            method: ProofMethod::Sweep,
            output_bytes: 0
        }),
    ]
}

/// A task with every kind of time limit.
fn limited() -> Life {
    let mut life = queued();
    let spec = Spec {
        idle_timeout: Some(2 * GRACE),
        silence: Some(Silence {
            stale_after: GRACE,
            on_stale: OnStale::Notify,
        }),
        input: Some(InputPolicy {
            notify_after: Some(GRACE),
        }),
        ready: Some(Ready {
            probe: Probe::Port(None),
            interval: GRACE,
            timeout: Some(2 * GRACE),
            on_timeout: OnReadyTimeout::Notify,
        }),
        ..Spec::clone(&life.task.spec)
    };
    life.task.spec = spec.into();
    life.task.queued = None;
    life
}

/// The same input, recorded by a shim whose wall clock shows another time.
fn recorded_at(mut input: Input, wall: Timestamp) -> Input {
    if let Input::Started(started) = &mut input {
        started.at.wall = wall;
    }
    if let Input::LeaderExited { end, .. } = &mut input {
        end.at.wall = wall;
    }
    input
}

proptest! {
    /// T6
    #[test]
    fn no_timer_and_no_effect_depends_on_the_wall_clock(
        inputs in prop::collection::vec((any_input(), 0..20_000_000_u64, any::<u64>()), 0..40),
    ) {
        let (mut steady, mut set) = (limited(), limited());
        let mut now = 10;
        for (input, passed, wall) in inputs {
            now += passed;
            let wall = Timestamp(wall);
            let effects = steady.step(input.clone(), moment(now));
            let now = Moment { wall, mono: Monotonic(now) };
            prop_assert_eq!(set.step(recorded_at(input, wall), now), effects);
            prop_assert_eq!(set.timer(), steady.timer());
        }
    }

    /// E1, S13
    #[test]
    fn every_task_starts_at_most_once_and_ends_once_and_last(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = created(Some(GRACE));
        let mut effects = Vec::new();
        // In the end the tree is empty and the children are finished.
        let end = [tree_ended(0), Input::ChildrenFinished];
        for (at, input) in inputs.into_iter().chain(end).enumerate() {
            effects.extend(life.step(input, moment(at as u64)));
        }
        let recorded: Vec<EventKind> = effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Record(kind) => Some(*kind),
                Effect::Signal(_)
                | Effect::Kill
                | Effect::StopChildren
                | Effect::Spill
                | Effect::Abandon
                | Effect::AwaitAttempt
                | Effect::BeginAttempt
                | Effect::FollowOutput
                | Effect::Probe
                | Effect::LookForInput => None,
            })
            .collect();
        let count = |kind| recorded.iter().filter(|one| **one == kind).count();
        prop_assert_eq!(recorded.last(), Some(&EventKind::Ended));
        prop_assert_eq!(count(EventKind::Ended), 1);
        prop_assert!(count(EventKind::Started) <= 1);
        prop_assert_eq!(effects.last(), Some(&Effect::Record(EventKind::Ended)));
        prop_assert_eq!(life.timer(), None);
    }

    /// Y1, Y2
    #[test]
    fn ready_and_not_ready_are_recorded_at_most_once_and_ready_is_the_last_word(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = limited();
        let mut recorded = Vec::new();
        for (at, input) in inputs.into_iter().enumerate() {
            recorded.extend(life.step(input, moment(at as u64)));
        }
        let places = |kind| {
            let is_it = |(_, effect): &(usize, &Effect)| **effect == Effect::Record(kind);
            let places = recorded.iter().enumerate().filter(is_it);
            places.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let (ready, not_ready) = (places(EventKind::Ready), places(EventKind::NotReady));
        prop_assert!(ready.len() <= 1 && not_ready.len() <= 1);
        prop_assert!(ready.is_empty() || not_ready < ready);
    }

    /// X1: a task that is stopped while queued gets no signal.
    #[test]
    fn a_queued_task_is_admitted_at_most_once_and_never_after_a_stop(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = queued();
        let mut all = Vec::new();
        for (at, input) in inputs.into_iter().enumerate() {
            // A queued task has no tree that could report anything.
            let is_from_the_tree = !matches!(
                input,
                Input::Admitted | Input::StoppedWhileQueued | Input::StopRequested(_) | Input::ChildrenFinished
            );
            if life.task.is_waiting() && is_from_the_tree {
                continue;
            }
            let effects = life.step(input, moment(at as u64));
            if life.task.is_waiting() {
                prop_assert!(!effects.iter().any(|effect| matches!(effect, Effect::Signal(_) | Effect::Kill)));
            }
            all.extend(effects);
        }
        let admitted = |effect: &&Effect| **effect == Effect::Record(EventKind::Admitted);
        prop_assert!(all.iter().filter(admitted).count() <= 1);
        let stopped = all.iter().position(|effect| *effect == Effect::Record(EventKind::Stopping));
        let admission = all.iter().position(|effect| *effect == Effect::Record(EventKind::Admitted));
        prop_assert!(stopped.is_none() || admission.is_none() || admission < stopped);
    }

    /// The intent is durable before its effect.
    #[test]
    fn no_signal_is_sent_before_its_intent_is_recorded(
        inputs in prop::collection::vec(any_input(), 0..40),
    ) {
        let mut life = created(Some(GRACE));
        let mut intent = false;
        for (at, input) in inputs.into_iter().enumerate() {
            for effect in life.step(input, moment(at as u64)) {
                match effect {
                    Effect::Record(EventKind::Stopping) => intent = true,
                    Effect::Record(_)
                    | Effect::Spill
                    | Effect::Abandon
                    | Effect::AwaitAttempt
                    | Effect::BeginAttempt
                    | Effect::FollowOutput
                    | Effect::Probe
                    | Effect::LookForInput => {}
                    Effect::Signal(_) | Effect::Kill | Effect::StopChildren => prop_assert!(intent),
                }
            }
        }
    }

    /// A terminal state never changes.
    #[test]
    fn no_input_changes_a_finished_task(
        inputs in prop::collection::vec(any_input(), 0..40),
        later in any_input(),
    ) {
        let mut life = created(None);
        for (at, input) in inputs.into_iter().chain([tree_ended(1), Input::ChildrenFinished]).enumerate() {
            life.step(input, moment(at as u64));
        }
        let finished = life.clone();
        prop_assert_eq!(life.step(later, moment(1000)), []);
        prop_assert_eq!(life, finished);
    }

    /// P2, P3, P4, E1: a hosted task has no process, and each of its ends is one end.
    #[test]
    fn a_hosted_task_gets_no_signal_and_ends_once_and_last(
        inputs in prop::collection::vec((any_input(), any::<bool>()), 0..40),
    ) {
        let mut life = hosted();
        let mut effects = Vec::new();
        let end = [Input::WorkerLost("gone".to_owned()), Input::ChildrenFinished];
        let end = end.map(|input| (input, false));
        for (at, (input, is_connected)) in inputs.into_iter().chain(end).enumerate() {
            // It has no tree that could report anything.
            let is_from_a_tree = matches!(
                input,
                Input::LeaderExited { .. } | Input::TreeEnded(_) | Input::EndedUnobserved { .. }
                    | Input::SpawnFailed(_) | Input::SignalSent(_) | Input::KillOverdue(_)
            );
            if is_from_a_tree {
                continue;
            }
            life.see_worker(WorkerSeen {
                connection: match is_connected {
                    true => Connection::Connected,
                    false => Connection::None,
                },
                ..WorkerSeen::default()
            });
            effects.extend(life.step(input, moment(at as u64)));
        }
        let is_end = |effect: &&Effect| **effect == Effect::Record(EventKind::Ended);
        prop_assert_eq!(effects.iter().filter(is_end).count(), 1);
        prop_assert_eq!(effects.last(), Some(&Effect::Record(EventKind::Ended)));
        let signals = |effect: &Effect| matches!(effect, Effect::Signal(_) | Effect::Kill);
        prop_assert!(!effects.iter().any(signals));
        prop_assert_eq!(life.timer(), None);
    }

    /// P9: whatever happens, the latest progress is in the latest event.
    #[test]
    fn progress_is_announced_at_most_once_a_second_and_not_lost(
        steps in prop::collection::vec((any::<bool>(), 0..2_000_000_u64), 1..40),
    ) {
        let mut life = running();
        let (mut now, mut announced, mut told) = (10, Vec::new(), 0);
        for (number, (is_timer, passed)) in steps.into_iter().enumerate() {
            now += passed;
            // The actor serves timers that are due first.
            while let Some((due, Timer::Progress)) = life.timer().filter(|(due, _)| due.0 <= now) {
                prop_assert_eq!(life.step(Input::ProgressDue, moment(due.0)).len(), 1);
                announced.push(due.0);
                told = life.task.progress.as_ref().map_or(0, |progress| progress.blocks);
            }
            if !is_timer {
                let blocks = number as u64 + 1;
                let progress = Progress { blocks, ..Progress::default() };
                if !life.step(Input::Progress(Arc::new(progress)), moment(now)).is_empty() {
                    announced.push(now);
                    told = blocks;
                }
            }
        }
        prop_assert!(announced.windows(2).all(|pair| pair[1] >= pair[0] + 1_000_000));
        let latest = life.task.progress.as_ref().map_or(0, |progress| progress.blocks);
        let is_due = life.timer().is_some_and(|(_, timer)| timer == Timer::Progress);
        prop_assert!(told == latest || is_due);
    }
}
