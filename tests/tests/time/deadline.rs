//! Deadlines: when they fire, and that they leave nothing behind.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, TaskSpecExt as _, argv, micros, millis, secs,
    v1::{outcome::Result as Ended, *},
};

fn names(task: &BackgroundTask) -> Vec<&str> {
    let sent = &task.stop.as_ref().unwrap().signals;
    sent.iter()
        .map(|signal| &*signal.name)
        .filter(|name| *name != "SIGCONT")
        .collect()
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_is_timed_out_when_term_is_obeyed_also_with_exit_0() {
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
        (TaskState::TimedOut, EndReason::Deadline)
    );
    assert_eq!(
        task.outcome.as_ref().unwrap().result,
        Some(Ended::ExitCode(0))
    );
    assert_eq!(names(&task), ["SIGTERM"]);
    let stop = task.stop.as_ref().unwrap();
    assert_eq!(
        (stop.cause(), &*stop.actor.as_ref().unwrap().name),
        (EndReason::Deadline, "heeler")
    );
    let ran = micros(&stop.request_time) - micros(&task.start_time);
    assert!(ran >= 1_500_000, "stopped after {ran} us");
    assert_eq!(api.lines(&fixture.id).await, ["stopping"]);
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_is_timed_out_when_term_is_ignored() {
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
        (TaskState::TimedOut, EndReason::Deadline)
    );
    assert_eq!(names(&task), ["SIGTERM", "SIGKILL"]);
    let stop = task.stop.as_ref().unwrap();
    let kill = micros(&stop.signals.last().unwrap().send_time);
    assert!(
        kill - micros(&stop.request_time) >= 400_000,
        "the grace was kept"
    );
    assert_eq!(stop.proof.as_ref().unwrap().survivors, []);
}

/// T1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_before_the_timeout_stays_a_cancel() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default().with_timeout(secs(2));
    let fixture = daemon
        .run_as(&api, request, "ignore TERM pid ready forever")
        .await;
    fixture.process("ready").await;
    // The timeout comes within the grace, and changes nothing.
    let grace = Some(secs(3));
    let request = CancelRequest {
        grace,
        wait: true,
        ..heeler_tests::api::cancel(&fixture.id)
    };
    let task = api.cancel_one(request).await.task.unwrap();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::Cancelled, EndReason::Cancelled)
    );
    assert_eq!(names(&task), ["SIGTERM", "SIGKILL"]);
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
    // The longest that protobuf allows, and the longest that fits.
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
        let most = prost_types::Duration {
            seconds: 315_576_000_000,
            nanos: 0,
        };
        assert_eq!(fixture.task.timeout(), Some(most), "as long as can be told");
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
async fn a_very_long_grace_still_ends_when_the_tree_does() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let grace = Some(prost_types::Duration {
        seconds: 315_576_000_000,
        nanos: 0,
    });
    let request = CancelRequest {
        grace,
        wait: true,
        ..heeler_tests::api::cancel(&fixture.id)
    };
    let task = api.cancel_one(request).await.task.unwrap();
    assert_eq!(
        (task.state(), names(&task)),
        (TaskState::Cancelled, vec!["SIGTERM"])
    );
}
