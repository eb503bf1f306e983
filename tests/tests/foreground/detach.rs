//! Detach: the processes and the output stay, the attached clients leave.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, TaskSpecExt as _, foreground, micros, millis,
    outcome::exit_code,
    request::{detach, detach_session},
    secs, shell,
    v1::*,
    watch::count,
};

/// F1, F5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn detach_ends_the_attach_and_keeps_the_process() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("print one gate {} print two exit 5", daemon.file("gate"));
    let request = foreground()
        .with_reattach_window(millis(0))
        .with_on_disconnect(DisconnectAction::Keep);
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut attachment = api.attach(&fixture.id).await;
    attachment.until("one\n").await;
    let request = DetachRequest {
        reason: "the user pressed a key".to_owned(),
        actor: "host".to_owned(),
        ..detach(&fixture.id)
    };
    let answer = api.detach(request).await.unwrap();
    assert_eq!(answer.results[0].outcome(), DetachOutcome::Detached);
    let ended = attachment.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Detached);
    let task = ended.task.unwrap();
    assert_eq!(task, *answer.results[0].task.as_ref().unwrap());
    assert_eq!(task.placement(), Placement::Background);
    assert_eq!(task.leader, fixture.task.leader, "the same process");
    let detached = task.detachment.as_ref().unwrap();
    assert_eq!(detached.cause(), DetachCause::Requested);
    assert_eq!(detached.reason, "the user pressed a key");
    assert_eq!(detached.actor.as_ref().unwrap().name, "host");
    // The disconnect of a client that was attached no longer matters.
    drop(attachment);
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!(exit_code(&task), 5);
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    let events = api.event_types(&fixture.id).await;
    assert_eq!(
        events,
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Detached,
            TaskEventType::Ended
        ]
    );
}

/// F5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_detach_a_disconnect_does_not_reach_the_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("gate {}", daemon.file("gate"));
    let request = foreground().with_reattach_window(secs(2));
    let fixture = daemon.run_as(&api, request, &script).await;
    let attachment = api.attach(&fixture.id).await;
    api.detach_one(&fixture.id).await;
    drop(attachment);
    // Wait past the reattach window: a second task, with the same window, is cancelled.
    let request = foreground().with_reattach_window(secs(2));
    let abandoned = daemon.run_as(&api, request, "forever").await;
    assert_eq!(
        api.ended(&abandoned.id).await.end_reason(),
        EndReason::ClientDisconnected
    );
    gate.open();
    assert_eq!(api.ended(&fixture.id).await.state(), TaskState::Completed);
}

/// F2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_before_and_after_a_detach_is_complete_and_in_order() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for megabytes in [0, 1, 10] {
        let name = format!("gate-{megabytes}");
        let gate = daemon.gate(&name);
        let script = format!(
            "seq -f '%07.0f' 1 {count}; echo; echo ready >&2; read -r _ < {gate}; seq -f '%07.0f' 1 {count}; echo done",
            count = megabytes * 131_072 + 10,
            gate = daemon.file(&name),
        );
        let task = api.start(foreground().with_command_of(shell(script))).await;
        let mut attachment = api.attach(&task.id).await;
        attachment.until("ready\n").await;
        api.detach_one(&task.id).await;
        assert_eq!(attachment.ended().await.reason(), AttachEndReason::Detached);
        gate.open();
        api.ended(&task.id).await;
        let all = api.output(&task.id).await;
        assert!(
            all.starts_with(&attachment.output),
            "the output of the attached client differs"
        );
        let part: String = (1..=megabytes * 131_072 + 10)
            .map(|number| format!("{number:07}\n"))
            .collect();
        let text = String::from_utf8(all).unwrap().replace("ready\n", "");
        assert!(text == format!("{part}\n{part}done\n"), "{megabytes} MB");
    }
}

/// F3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_timeout_of_a_detach_counts_from_the_detach() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground()
        .with_foreground_timeout(secs(2))
        .with_on_foreground_timeout(ForegroundTimeoutAction::Cancel)
        .with_timeout(secs(3600));
    let fixture = daemon.run_as(&api, request, "forever").await;
    let request = DetachRequest {
        timeout: Some(millis(3500)),
        ..detach(&fixture.id)
    };
    let answer = api.detach(request).await.unwrap();
    let task = answer.results[0].task.as_ref().unwrap();
    assert_eq!(task.timeout(), Some(secs(3600)), "the specification stays");
    let detachment = task.detachment.as_ref().unwrap();
    assert_eq!(detachment.timeout, Some(millis(3500)));
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.end_reason(), EndReason::Timeout);
    let detachment = task.detachment.as_ref().unwrap();
    let stop = task.stop.as_ref().unwrap();
    let ran = micros(&stop.request_time) - micros(&detachment.detach_time);
    assert!(ran >= 3_500_000, "stopped {ran} us after the detach");
}

/// F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn detach_of_a_background_or_finished_task_gives_its_state_and_no_event() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run_as(&api, foreground(), "forever").await;
    let background = daemon.run(&api, "forever").await;
    assert_eq!(
        api.detach_one(&fixture.id).await.outcome(),
        DetachOutcome::Detached
    );
    let revision = api.revision().await;
    for id in [&fixture.id, &background.id] {
        let result = api.detach_one(id).await;
        assert_eq!(result.outcome(), DetachOutcome::AlreadyBackground);
        assert_eq!(result.task.unwrap(), api.task(id).await);
    }
    assert_eq!(api.revision().await, revision, "an event was recorded");
    api.kill(&fixture.id).await;
    let result = api.detach_one(&fixture.id).await;
    assert_eq!(result.outcome(), DetachOutcome::AlreadyFinished);
    assert_eq!(result.task.unwrap().state(), TaskState::Cancelled);
    let events = api.history_of(&fixture.id).await;
    assert_eq!(count(&events, TaskEventType::Detached), 1);
}

/// F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn detach_of_a_session_detaches_its_foreground_tasks_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    assert_eq!(api.detach(detach_session("s")).await.unwrap().results, []);
    let of = |request: SpawnRequest| request.with_session("s");
    let background = daemon
        .run_as(&api, of(SpawnRequest::default()), "forever")
        .await;
    assert_eq!(api.detach(detach_session("s")).await.unwrap().results, []);
    let first = daemon.run_as(&api, of(foreground()), "forever").await;
    let second = daemon.run_as(&api, of(foreground()), "forever").await;
    let other = daemon.run_as(&api, foreground(), "forever").await;
    let answer = api.detach(detach_session("s")).await.unwrap();
    let ids: Vec<&str> = answer
        .results
        .iter()
        .map(|result| &*result.task.as_ref().unwrap().id)
        .collect();
    assert_eq!(ids, [&*second.id, &*first.id], "newest first");
    let placement = async |id: &str| api.task(id).await.placement();
    assert_eq!(placement(&background.id).await, Placement::Background);
    assert_eq!(placement(&other.id).await, Placement::Foreground);
}

/// F8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_ends_during_its_detach_gives_its_real_end_and_its_last_bytes() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for round in 0..20 {
        let gate = daemon.gate(&format!("gate-{round}"));
        let script = format!(
            "gate {} print last exit 9",
            daemon.file(&format!("gate-{round}"))
        );
        let fixture = daemon.run_as(&api, foreground(), &script).await;
        let attachment = api.attach(&fixture.id).await;
        gate.open();
        let result = api.detach_one(&fixture.id).await;
        let task = result.task.as_ref().unwrap();
        match result.outcome() {
            DetachOutcome::Detached => assert_eq!(task.placement(), Placement::Background),
            DetachOutcome::AlreadyFinished => {
                assert_eq!(task.state(), TaskState::Failed);
            }
            other @ (DetachOutcome::AlreadyBackground | DetachOutcome::Unspecified) => {
                panic!("{other:?}")
            }
        }
        check_end(&api, &fixture.id, attachment).await;
    }
}

async fn check_end(api: &Api, id: &str, mut attachment: heeler_tests::Attachment) {
    let ended = attachment.ended().await;
    let task = api.ended(id).await;
    assert_eq!(exit_code(&task), 9);
    assert_eq!(api.output(id).await, b"last\n");
    match ended.reason() {
        AttachEndReason::Finished => assert_eq!(attachment.output, b"last\n"),
        AttachEndReason::Detached => assert!(b"last\n".starts_with(&attachment.output[..])),
        other @ (AttachEndReason::LeaderExited | AttachEndReason::Unspecified) => {
            panic!("{other:?}")
        }
    }
}

/// F1, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_survives_a_crash_right_after_it() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let request = foreground().with_reattach_window(millis(100));
    let script = format!("print one gate {} print two", daemon.file("gate"));
    let request = request.with_on_disconnect(DisconnectAction::Keep);
    let fixture = daemon.run_as(&api, request, &script).await;
    api.detach_one(&fixture.id).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_eq!(task.placement(), Placement::Background);
    gate.open();
    assert_eq!(api.ended(&fixture.id).await.state(), TaskState::Completed);
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
}
