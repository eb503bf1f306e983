//! The words themselves.

use heeler_client::v1::{SignalOutcome, UnknownOutcome};

use super::*;

fn with(result: Ended) -> BackgroundTask {
    let outcome = Some(Outcome {
        result: Some(result),
    });
    BackgroundTask {
        outcome,
        ..BackgroundTask::default()
    }
}

fn killed() -> Ended {
    Ended::Signal(SignalOutcome {
        number: 9,
        name: "SIGKILL".to_owned(),
        core_dumped: false,
    })
}

#[test]
fn a_signal_is_told_as_128_and_its_number() {
    assert_eq!(exit_code(&with(killed())), Some(137));
    assert_eq!(exit_code(&with(Ended::ExitCode(3))), Some(3));
    assert_eq!(
        exit_code(&with(Ended::Unknown(UnknownOutcome::default()))),
        None
    );
    assert_eq!(exit_code(&BackgroundTask::default()), None);
}

#[test]
fn outcomes_are_told_apart() {
    assert_eq!(exit(&with(killed())), "SIGKILL");
    assert_eq!(
        outcome(&with(Ended::ExitCode(0)).outcome.unwrap()),
        "exit code 0"
    );
}

#[test]
fn arguments_are_quoted_as_one_would_type_them() {
    let args = ["sh", "-c", "it's", "a b", ""].map(str::to_owned).to_vec();
    let command_ = Some(Command::Argv(ArgvCommand { args }));
    let task = BackgroundTask {
        command: command_,
        ..BackgroundTask::default()
    };
    assert_eq!(command(&task), r"sh -c 'it'\''s' 'a b' ''");
}

/// F1, T5
#[test]
fn a_glance_shows_what_is_held_stale_or_queued() {
    let mut task = BackgroundTask {
        state: TaskState::Running.into(),
        placement: Placement::Foreground.into(),
        stale: true,
        queue: "builds".to_owned(),
        ..BackgroundTask::default()
    };
    assert_eq!(note(&task), "fg stale q:builds");
    task.state = TaskState::Completed.into();
    assert_eq!(note(&task), "");
    task.exclusive_key = "dev".to_owned();
    task.state = TaskState::Running.into();
    assert_eq!(note(&task), "fg stale q:builds", "it has the key");
    task.state = TaskState::Queued.into();
    assert_eq!(note(&task), "fg stale q:builds k:dev");
    assert_eq!(note(&BackgroundTask::default()), "");
}

/// F1
#[test]
fn a_detach_is_told_with_who_asked_and_why() {
    let detachment = |cause: DetachCause| {
        detached(&Detachment {
            cause: cause.into(),
            actor: Some(Actor {
                name: "heeler detach".to_owned(),
                ..Actor::default()
            }),
            reason: "enough".to_owned(),
            ..Detachment::default()
        })
    };
    assert_eq!(
        detachment(DetachCause::Requested),
        "a detach by heeler detach: enough"
    );
    assert_eq!(
        detachment(DetachCause::ForegroundTimeout),
        "its foreground timeout"
    );
}

/// C11
#[test]
fn what_the_daemon_does_by_a_rule_is_nobodys_wish() {
    let stop = |cause: EndReason, actor: Actor| {
        asked(&StopRecord {
            cause: cause.into(),
            actor: Some(actor),
            ..StopRecord::default()
        })
    };
    let daemon = Actor {
        name: "heeler".to_owned(),
        ..Actor::default()
    };
    let person = Actor {
        uid: Some(7),
        ..daemon.clone()
    };
    assert_eq!(stop(EndReason::Deadline, daemon), "its timeout");
    assert_eq!(
        stop(EndReason::Cancelled, person),
        "a cancel by heeler (uid 7)"
    );
}

/// C14
#[test]
fn survivors_are_named() {
    let left = ProcessInfo {
        pid: 7,
        command: "sleep 9".to_owned(),
        ..ProcessInfo::default()
    };
    let text = proof(&Proof {
        survivors: vec![left],
        ..Proof::default()
    });
    assert_eq!(text, "NOT gone, 1 left: 7 sleep 9");
}

#[test]
fn moments_and_sizes_are_short() {
    let at = Timestamp {
        seconds: 1_700_000_000,
        nanos: 7_654_321,
    };
    assert_eq!(moment(at), "2023-11-14T22:13:20.007Z");
    assert_eq!(
        (size(5), size(1536)),
        ("5 B".to_owned(), "1.5 KiB".to_owned())
    );
}
