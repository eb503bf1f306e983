//! Attached clients: what they receive, what ends an Attach stream, and what follows a disconnect.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, foreground, micros, millis, outcome::exit_code,
    secs, shell, v1::*, watch::ONE_RUN,
};

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attached_client_gets_all_output_and_then_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(shell("printf one; printf two >&2; exit 3").in_foreground())
        .await;
    assert_eq!(task.placement(), Placement::Foreground);
    assert_eq!(task.foreground().timeout, Some(secs(60)), "the default");
    assert_eq!(
        task.foreground().on_timeout(),
        ForegroundTimeoutAction::Detach
    );
    assert_eq!(task.foreground().on_disconnect(), DisconnectAction::Cancel);
    let mut attachment = api.attach(&task.id).await;
    let ended = attachment.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished);
    let task = ended.task.unwrap();
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(exit_code(&task), 3);
    let mut output = attachment.output.clone();
    output.sort_unstable();
    assert_eq!(output, b"enootw", "the order of two pipes is undefined");
    // An attach after the end gives everything at once.
    let mut again = api.attach(&task.id).await;
    assert_eq!(again.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(again.output, attachment.output);
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_foreground_deadline_detaches_the_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground().with_foreground_timeout(millis(700));
    let fixture = daemon.run_as(&api, request, "print before forever").await;
    let mut attachment = api.attach(&fixture.id).await;
    let ended = attachment.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Detached);
    assert_eq!(attachment.output, b"before\n");
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Background)
    );
    let detached = task.detachment.unwrap();
    assert_eq!(detached.cause(), DetachCause::ForegroundTimeout);
    let after = micros(&detached.detach_time) - micros(&task.start_time);
    assert!(after >= 700_000, "detached after {after} us");
    assert!(fixture.process("leader").await.is_alive());
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_foreground_deadline_times_the_task_out_when_asked_to() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground()
        .with_foreground_timeout(millis(700))
        .with_on_foreground_timeout(ForegroundTimeoutAction::Cancel);
    let mut fixture = daemon.run_as(&api, request, "forever").await;
    let mut attachment = api.attach(&fixture.id).await;
    let ended = attachment.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished);
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::Timeout)
    );
    fixture.assert_gone();
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_foreground_task_without_an_attached_client_is_cancelled() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground().with_reattach_window(millis(500));
    let mut fixture = daemon.run_as(&api, request, "forever").await;
    let task = api.ended(&fixture.id).await;
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Cancelled, EndReason::ClientDisconnected)
    );
    fixture.assert_gone();
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_disconnect_applies_once_after_the_reattach_window_of_the_last_client() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (policy, last) in [
        (DisconnectAction::Cancel, TaskEventType::Stopping),
        (DisconnectAction::Detach, TaskEventType::Detached),
    ] {
        let request = foreground()
            .with_reattach_window(millis(1500))
            .with_on_disconnect(policy);
        let fixture = daemon.run_as(&api, request, "print up forever").await;
        let (mut first, second) = (api.attach(&fixture.id).await, api.attach(&fixture.id).await);
        first.until("up").await;
        drop(first);
        let mut watch = api.watch_after(fixture.task.revision).await;
        // The window starts when the last client leaves.
        let left = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        drop(second);
        let event = watch.until_of(&fixture.id, last).await.pop().unwrap();
        let waited = micros(&event.event_time) - left.as_micros() as i64;
        assert!(
            waited >= 1_500_000,
            "on_disconnect applied after {waited} us"
        );
        let events = api.event_types(&fixture.id).await;
        assert_eq!(events.iter().filter(|event| **event == last).count(), 1);
    }
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_client_that_reattaches_within_the_window_keeps_the_task_and_reads_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("print one gate {} print two", daemon.file("gate"));
    let fixture = daemon.run_as(&api, foreground(), &script).await;
    let mut attachment = api.attach(&fixture.id).await;
    attachment.until("one\n").await;
    drop(attachment);
    let mut attachment = api.attach_at(&fixture.id, 4).await.unwrap();
    gate.open();
    let ended = attachment.ended().await;
    assert_eq!(ended.task.unwrap().state(), TaskState::Completed);
    assert_eq!(attachment.output, b"two\n");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn on_disconnect_keep_leaves_the_task_in_the_foreground() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground()
        .with_reattach_window(millis(0))
        .with_on_disconnect(DisconnectAction::Keep);
    let gate = daemon.gate("gate");
    let script = format!("gate {}", daemon.file("gate"));
    let fixture = daemon.run_as(&api, request, &script).await;
    drop(api.attach(&fixture.id).await);
    let task = api.task(&fixture.id).await;
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Foreground)
    );
    gate.open();
    assert_eq!(api.ended(&fixture.id).await.state(), TaskState::Completed);
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_leaders_exit_ends_the_attach_while_children_live() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "fork [ pid child forever ] print bye exit 7";
    let fixture = daemon.run_as(&api, foreground(), script).await;
    let mut attachment = api.attach(&fixture.id).await;
    let ended = attachment.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::LeaderExited);
    assert_eq!(attachment.output, b"bye\n");
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Background)
    );
    assert_eq!(exit_code(&task), 7);
    let child = fixture.process("child").await;
    assert!(child.is_alive());
    child.signal(nix::sys::signal::Signal::SIGKILL);
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(exit_code(&task), 7);
    assert_eq!(task.placement(), Placement::Background, "after its end");
    let request = ListRequest {
        include_finished: true,
        ..Default::default()
    };
    let listed = api.list(request).await.unwrap().tasks;
    assert_eq!(listed.len(), 1, "hidden like a task of the foreground");
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn orphan_policy_kill_ends_the_tree_with_its_leader() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground().with_orphan_policy(OrphanPolicy::Kill);
    let up = daemon.file("up");
    let script =
        format!("fork [ setsid ignore TERM pid child touch {up} forever ] await {up} exit 7");
    let mut fixture = daemon.run_as(&api, request, &script).await;
    fixture.process("child").await;
    let ended = api.attach(&fixture.id).await.ended().await;
    assert_eq!(
        ended.reason(),
        AttachEndReason::Finished,
        "the task ends with its leader"
    );
    let task = ended.task.unwrap();
    fixture.assert_gone();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(exit_code(&task), 7);
    assert_eq!(task.stop, None, "no stop was requested");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_or_shutdown_of_the_server_does_not_count_as_a_disconnect() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let request = foreground().with_reattach_window(secs(20));
    let script = format!("print one gate {} print two", daemon.file("gate"));
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut attachment = api.attach(&fixture.id).await;
    attachment.until("one\n").await;
    daemon.kill9();
    attachment.try_next().await.unwrap_err();
    daemon.restart().await;
    let mut attachment = daemon.api().await.attach_at(&fixture.id, 4).await.unwrap();
    assert_eq!(attachment.task.placement(), Placement::Foreground);
    daemon.terminate();
    attachment.try_next().await.unwrap_err();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut attachment = api.attach_at(&fixture.id, 4).await.unwrap();
    gate.open();
    assert_eq!(attachment.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(attachment.output, b"two\n");
    let events = api.event_types(&fixture.id).await;
    assert_eq!(events, ONE_RUN);
}

/// C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn attach_to_an_unknown_task_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for (id, reason) in [
        ("shell-aaaaaaaaaa", tonic::Code::NotFound),
        ("../etc", tonic::Code::NotFound),
        ("", tonic::Code::InvalidArgument),
    ] {
        let refused = api.attach_at(id, 0).await.unwrap_err();
        assert_eq!(refused.code(), reason, "{id:?}");
    }
}

/// N3
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_attached_clients_do_not_block_other_calls() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run_as(&api, foreground(), "print up forever").await;
    let mut attachments = Vec::new();
    for _ in 0..10 {
        let api = daemon.api().await;
        for _ in 0..100 {
            attachments.push(api.attach(&fixture.id).await);
        }
    }
    assert_eq!(api.all().await.len(), 1, "List is answered");
    let other = api.start(shell("exit 0")).await;
    api.ended(&other.id).await;
    api.detach_one(&fixture.id).await;
    for mut attachment in attachments {
        assert_eq!(attachment.ended().await.reason(), AttachEndReason::Detached);
    }
}
