//! Tasks that are not ready in time.

use heeler_tests::{
    Daemon, SpawnRequestExt as _, eventually, micros, millis,
    v1::{ready_policy::Probe, *},
    watch::task_of,
};

use super::{free_port, ready_of, wait_ready, with_probe};

/// Y2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_not_ready_in_time_says_so_once_and_may_still_become_ready() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (gate, port) = (daemon.gate("up"), free_port());
    let request = with_probe(Probe::Port(port.into())).with_ready_timeout(millis(400));
    let script = format!("gate {} listen {port} forever", daemon.file("up"));
    let fixture = daemon.run_as(&api, request, &script).await;
    let mut watch = api.watch_after(fixture.task.revision).await;
    let answer = wait_ready(&api, &fixture.id, None).await;
    assert!(answer.satisfied, "the answer is known");
    assert_eq!(answer.met[0].readiness(), Readiness::NotReady);
    let late = watch.event().await;
    assert_eq!(late.r#type(), TaskEventType::NotReady);
    let waited = micros(&late.event_time) - micros(&task_of(&late).start_time);
    assert!(waited >= 400_000, "after {waited} us");
    assert_eq!(task_of(&late).state(), TaskState::Running);
    gate.open();
    assert_eq!(watch.event().await.r#type(), TaskEventType::Ready);
    assert_eq!(ready_of(&api, &fixture.id).await, Readiness::Ready);
}

/// Y2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_not_ready_in_time_is_stopped_if_asked_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_probe(Probe::Port(0))
        .with_grace(millis(100))
        .with_ready_timeout(millis(300))
        .with_ready_action(ReadyTimeoutAction::Cancel);
    let mut fixture = daemon.run_as(&api, request, "ignore TERM forever").await;
    let mut watch = api.watch_after(fixture.task.revision).await;
    let types = [
        TaskEventType::NotReady,
        TaskEventType::Stopping,
        TaskEventType::Ended,
    ];
    for kind in types {
        assert_eq!(watch.event().await.r#type(), kind);
    }
    fixture.assert_gone();
    let task = api.task(&fixture.id).await;
    assert_eq!(
        (task.state(), task.end_reason(), task.readiness()),
        (
            TaskState::TimedOut,
            EndReason::NotReady,
            Readiness::NotReady
        )
    );
    assert_eq!(task.stop.unwrap().cause(), EndReason::NotReady);
}

/// Y2, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_ready_timeout_that_passes_while_the_server_is_dead_is_told_once_by_the_next() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = with_probe(Probe::Port(0)).with_ready_timeout(millis(1000));
    let fixture = daemon.run_as(&api, request, "forever").await;
    daemon.kill9();
    let started = micros(&fixture.task.start_time);
    eventually("the end of the time", || now_micros() > started + 1_100_000).await;
    daemon.restart().await;
    let api = daemon.api().await;
    let answer = wait_ready(&api, &fixture.id, None).await;
    assert_eq!(answer.met[0].readiness(), Readiness::NotReady);
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    api.kill(&fixture.id).await;
    let mut watch = api.watch_after(0).await;
    let mut types = Vec::new();
    while types.last() != Some(&TaskEventType::Ended) {
        types.push(watch.event().await.r#type());
    }
    let is_told = |kind: &&TaskEventType| **kind == TaskEventType::NotReady;
    assert_eq!(types.iter().filter(is_told).count(), 1, "{types:?}");
}

fn now_micros() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as i64
}
