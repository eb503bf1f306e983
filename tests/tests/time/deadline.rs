//! Timeouts and graces.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, argv, micros, millis,
    outcome::{exit_code, proof_of, signals_sent},
    secs,
    v1::*,
};

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_is_timed_out_although_term_is_obeyed_with_exit_code_0() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let timeout = millis(1500);
    let request = SpawnRequest::default().with_timeout(timeout);
    let mut fixture = daemon
        .run_as(&api, request, "trap TERM [ print stopping exit 0 ] forever")
        .await;
    assert_eq!(fixture.task.timeout(), Some(timeout));
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::Timeout)
    );
    assert_eq!(exit_code(&task), 0);
    assert_eq!(signals_sent(&task), ["SIGTERM"]);
    let stop = task.stop.as_ref().unwrap();
    assert_eq!(
        (stop.cause(), &*stop.actor.as_ref().unwrap().name),
        (EndReason::Timeout, "heeler")
    );
    let ran = micros(&stop.request_time) - micros(&task.start_time);
    assert!(ran >= 1_500_000, "stopped after {ran} us");
    assert_eq!(api.lines(&fixture.id).await, ["stopping"]);
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_is_timed_out_although_term_is_ignored() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default()
        .with_timeout(millis(1000))
        .with_grace(millis(400));
    let mut fixture = daemon
        .run_as(
            &api,
            request,
            "ignore TERM fork [ setsid pid child forever ] forever",
        )
        .await;
    fixture.process("child").await;
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::Timeout)
    );
    assert_eq!(signals_sent(&task), ["SIGTERM", "SIGKILL"]);
    let stop = task.stop.as_ref().unwrap();
    let kill = micros(&stop.signals.last().unwrap().send_time);
    assert!(
        kill - micros(&stop.request_time) >= 400_000,
        "killed before the end of the grace"
    );
    proof_of(&task);
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_during_the_grace_of_a_cancel_changes_nothing() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_timeout(secs(2));
    let fixture = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    fixture.process("ready").await;
    // The timeout falls into the grace.
    let task = api.stop_within(&fixture.id, secs(3)).await.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Cancelled, EndReason::Cancelled)
    );
    assert_eq!(signals_sent(&task), ["SIGTERM", "SIGKILL"]);
}

/// T2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_natural_end_leaves_no_timer_behind() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..3 {
        let task = api.start(argv(["true"]).with_timeout(secs(3600))).await;
        let task = api.ended(&task.id).await;
        assert_eq!((task.state(), &task.stop), (TaskState::Completed, &None));
    }
    daemon.terminate();
}

/// T3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn very_long_durations_neither_overflow_nor_fire_at_once() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    // The longest that protobuf allows, and the longest that the field holds.
    for seconds in [315_576_000_000, i64::MAX] {
        let longest = prost_types::Duration {
            seconds,
            nanos: 999_999_999,
        };
        let request = SpawnRequest::default()
            .with_timeout(longest)
            .with_grace(longest);
        let gate = daemon.gate(&format!("gate-{seconds}"));
        let script = format!("gate {} exit 0", daemon.file(&format!("gate-{seconds}")));
        let fixture = daemon.run_as(&daemon.api().await, request, &script).await;
        let most = secs(315_576_000_000);
        assert_eq!(
            fixture.task.timeout(),
            Some(most),
            "the longest valid duration"
        );
        daemon.kill9();
        daemon.restart().await;
        let task = daemon.api().await.task(&fixture.id).await;
        assert_eq!((task.state(), &task.stop), (TaskState::Running, &None));
        gate.open();
        let task = daemon.api().await.ended(&fixture.id).await;
        assert_eq!((task.state(), &task.stop), (TaskState::Completed, &None));
    }
    drop(api);
}

/// T3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_very_long_grace_ends_with_the_tree() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let task = api
        .stop_within(&fixture.id, secs(315_576_000_000))
        .await
        .task
        .unwrap();
    assert_eq!(
        (task.state(), signals_sent(&task)),
        (TaskState::Cancelled, vec!["SIGTERM"])
    );
}
