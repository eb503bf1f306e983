//! Silence: idle deadlines and stale tasks.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, micros, millis, shell,
    v1::*,
    watch::{count, task_of},
};

/// T4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_pushes_the_idle_deadline_back_and_inspect_does_not() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = shell("for n in 1 2 3 4 5 6; do echo $n; sleep 0.5; done; exec sleep 1000")
        .with_idle_timeout(millis(1500));
    let task = api.start(request).await;
    // Only output counts: Inspect does not.
    api.inspect(&task.id).await.unwrap();
    let task = api.ended(&task.id).await;
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::IdleTimeout)
    );
    let chunks = api
        .read(heeler_tests::request::read(&task.id, 0))
        .await
        .unwrap()
        .chunks;
    let last = micros(&chunks.last().unwrap().read_time);
    let stop = task.stop.as_ref().unwrap();
    let silent = micros(&stop.request_time) - last;
    assert!(silent >= 1_500_000, "stopped after {silent} us of silence");
    assert_eq!(api.lines(&task.id).await.len(), 6, "all lines of 3 s");
}

/// T5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stale_is_reported_once_per_silence_and_cleared_by_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (first, second) = (daemon.gate("first"), daemon.gate("second"));
    let (one, two) = (daemon.file("first"), daemon.file("second"));
    let request = SpawnRequest::default().with_stale_after(millis(400));
    let script = format!("print up gate {one} print again gate {two}");
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut watch = api.watch_after(fixture.task.revision).await;
    let stale = watch.event().await;
    assert_eq!(stale.r#type(), TaskEventType::Stale);
    assert!(task_of(&stale).stale);
    assert!(api.task(&fixture.id).await.stale);
    first.open();
    let active = watch.event().await;
    assert_eq!(active.r#type(), TaskEventType::Active);
    assert!(!task_of(&active).stale);
    let stale = watch.event().await;
    assert_eq!(stale.r#type(), TaskEventType::Stale);
    let silent = micros(&stale.event_time) - micros(&active.event_time);
    assert!(silent >= 390_000, "stale again after {silent} us");
    second.open();
    assert_eq!(watch.event().await.r#type(), TaskEventType::Ended);
}

/// T5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn stale_action_cancel_stops_a_stale_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = SpawnRequest::default()
        .with_stale_after(millis(400))
        .with_stale_action(StaleAction::Cancel);
    let mut fixture = daemon.run_as(&api, request, "forever").await;
    let task = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(
        (task.state(), task.end_reason()),
        (TaskState::TimedOut, EndReason::IdleTimeout)
    );
    let events = api.event_types(&fixture.id).await;
    assert_eq!(
        events,
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Stale,
            TaskEventType::Stopping,
            TaskEventType::Ended
        ]
    );
}

/// T5, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_silence_continues_across_a_restart() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let request = SpawnRequest::default().with_stale_after(millis(300));
    let script = format!("gate {} print up forever", daemon.file("gate"));
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut watch = api.watch_after(fixture.task.revision).await;
    assert_eq!(watch.event().await.r#type(), TaskEventType::Stale);
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert!(
        api.task(&fixture.id).await.stale,
        "not stale after the restart"
    );
    let events = api.history_of(&fixture.id).await;
    assert_eq!(
        count(&events, TaskEventType::Stale),
        1,
        "the same silence was reported twice"
    );
    let mut watch = api.watch_after(api.revision().await).await;
    gate.open();
    assert_eq!(watch.event().await.r#type(), TaskEventType::Active);
    assert_eq!(watch.event().await.r#type(), TaskEventType::Stale);
}
