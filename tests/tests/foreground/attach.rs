//! The foreground: who holds a task, what releases them, and what becomes of a task that nobody holds.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, foreground, micros, millis, secs, shell,
    v1::{outcome::Result as Ended, *},
    watch::types,
};

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_holder_gets_all_output_and_then_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(shell("printf one; printf two >&2; exit 3").in_foreground())
        .await;
    assert_eq!(task.placement(), Placement::Foreground);
    assert_eq!(task.foreground_timeout(), Some(secs(60)), "the default");
    assert_eq!(
        task.on_foreground_timeout(),
        ForegroundTimeoutAction::Detach
    );
    assert_eq!(task.on_disconnect(), DisconnectAction::Cancel);
    let mut hold = api.attach(&task.id).await;
    let ended = hold.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished);
    let task = ended.task.unwrap();
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(3)));
    let mut output = hold.output.clone();
    output.sort_unstable();
    assert_eq!(output, b"enootw", "order between two pipes is not kept");
    // Afterwards too: from the start, and to the end at once.
    let mut again = api.attach(&task.id).await;
    assert_eq!(again.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(again.output, hold.output);
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn at_the_foreground_deadline_a_task_is_detached() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground().with_foreground_timeout(millis(700));
    let fixture = daemon.run_as(&api, request, "print before forever").await;
    let mut hold = api.attach(&fixture.id).await;
    let ended = hold.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Detached);
    assert_eq!(hold.output, b"before\n");
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Background)
    );
    let detached = task.detached.unwrap();
    assert_eq!(detached.cause(), DetachCause::ForegroundTimeout);
    let after = micros(&detached.detach_time) - micros(&task.start_time);
    assert!(after >= 700_000, "detached after {after} us");
    assert!(fixture.process("leader").await.is_alive());
}

/// F4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn at_the_foreground_deadline_a_task_is_timed_out_if_that_was_asked_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground()
        .with_foreground_timeout(millis(700))
        .with_on_foreground_timeout(ForegroundTimeoutAction::Cancel);
    let mut fixture = daemon.run_as(&api, request, "forever").await;
    let mut hold = api.attach(&fixture.id).await;
    let ended = hold.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished);
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::Deadline)
    );
    fixture.assert_gone();
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_nobody_comes_to_hold_is_cancelled() {
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
async fn when_the_last_holder_leaves_the_policy_applies_once_after_the_window() {
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
        // Nothing happens while one is left; the window begins when that one leaves.
        let left = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap();
        drop(second);
        let event = watch.until_of(&fixture.id, last).await.pop().unwrap();
        let waited = micros(&event.event_time) - left.as_micros() as i64;
        assert!(waited >= 1_500_000, "the policy came after {waited} us");
        let told = types(&api.history_of(&fixture.id).await);
        assert_eq!(told.iter().filter(|told| **told == last).count(), 1);
    }
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_holder_that_comes_back_in_time_keeps_the_task_and_reads_on_where_it_was() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("print one gate {} print two", daemon.file("gate"));
    let fixture = daemon.run_as(&api, foreground(), &script).await;
    let mut hold = api.attach(&fixture.id).await;
    hold.until("one\n").await;
    drop(hold);
    let mut hold = api.attach_at(&fixture.id, 4).await.unwrap();
    gate.open();
    let ended = hold.ended().await;
    assert_eq!(ended.task.unwrap().state(), TaskState::Completed);
    assert_eq!(hold.output, b"two\n");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_kept_waits_for_whoever_comes() {
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
async fn a_leader_that_exits_releases_its_holder_while_children_live() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "fork [ pid child forever ] print bye exit 7";
    let fixture = daemon.run_as(&api, foreground(), script).await;
    let mut hold = api.attach(&fixture.id).await;
    let ended = hold.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::LeaderExited);
    assert_eq!(hold.output, b"bye\n");
    let task = ended.task.unwrap();
    assert_eq!(
        (task.state(), task.placement()),
        (TaskState::Running, Placement::Background)
    );
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    let child = fixture.process("child").await;
    assert!(child.is_alive());
    child.signal(nix::sys::signal::Signal::SIGKILL);
    let task = api.ended(&fixture.id).await;
    assert_eq!(task.state(), TaskState::Failed);
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_kill_the_rest_of_the_tree_ends_with_its_leader() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = foreground().with_orphan_policy(OrphanPolicy::Kill);
    let up = daemon.file("up");
    let script =
        format!("fork [ setsid ignore TERM pid child touch {up} forever ] await {up} exit 7");
    let mut fixture = daemon.run_as(&api, request, &script).await;
    fixture.process("child").await;
    let ended = api.attach(&fixture.id).await.ended().await;
    assert_eq!(ended.reason(), AttachEndReason::Finished, "all at once");
    let task = ended.task.unwrap();
    fixture.assert_gone();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Failed, EndReason::Exited)
    );
    assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(7)));
    assert_eq!(task.stop, None, "nobody has asked for it");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_that_dies_or_ends_is_no_holder_that_leaves() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let request = foreground().with_reattach_window(secs(20));
    let script = format!("print one gate {} print two", daemon.file("gate"));
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut hold = api.attach(&fixture.id).await;
    hold.until("one\n").await;
    daemon.kill9();
    hold.try_next().await.unwrap_err();
    daemon.restart().await;
    let mut hold = daemon.api().await.attach_at(&fixture.id, 4).await.unwrap();
    assert_eq!(hold.task.placement(), Placement::Foreground);
    daemon.terminate();
    hold.try_next().await.unwrap_err();
    daemon.restart().await;
    let api = daemon.api().await;
    let mut hold = api.attach_at(&fixture.id, 4).await.unwrap();
    gate.open();
    assert_eq!(hold.ended().await.reason(), AttachEndReason::Finished);
    assert_eq!(hold.output, b"two\n");
    let told = types(&api.history_of(&fixture.id).await);
    assert_eq!(
        told,
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Ended
        ]
    );
}

/// S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_nobody_knows_cannot_be_attached_to() {
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
async fn a_thousand_holders_keep_nobody_else_from_calling() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run_as(&api, foreground(), "print up forever").await;
    let mut holds = Vec::new();
    for _ in 0..10 {
        let api = daemon.api().await;
        for _ in 0..100 {
            holds.push(api.attach(&fixture.id).await);
        }
    }
    assert_eq!(api.all().await.len(), 1, "a list is answered");
    let other = api.start(shell("exit 0")).await;
    api.ended(&other.id).await;
    api.detach_one(&fixture.id).await;
    for mut hold in holds {
        assert_eq!(hold.ended().await.reason(), AttachEndReason::Detached);
    }
}
