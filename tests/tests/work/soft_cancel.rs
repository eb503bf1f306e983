//! Soft cancels: a worker finishes its present tool call before the signal.

use std::time::Instant;

use heeler_tests::{
    Api, Daemon, Worker, micros, millis,
    outcome::{exit_code, proof_of, signal, signals_sent},
    request::cancel,
    secs, shell,
    v1::{work_response::Item as Response, *},
    watch::types,
    worker::{join, notes, result},
};

/// A stop with these graces.
fn graces(soft: prost_types::Duration, grace: prost_types::Duration) -> CancelRequest {
    CancelRequest {
        how: Some(cancel_request::How::Graceful(StopPolicy {
            soft_grace: Some(soft),
            grace: Some(grace),
            ..Default::default()
        })),
        ..Default::default()
    }
}

async fn cancel_softly(
    api: &Api,
    id: &str,
    soft: prost_types::Duration,
    grace: prost_types::Duration,
) -> BackgroundTask {
    let request = CancelRequest {
        filter: cancel(id).filter,
        ..graces(soft, grace)
    };
    api.cancel_one(request).await.task.unwrap()
}

/// C18, P6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_finishes_its_tool_call_and_ends_without_a_signal() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("done");
    let script = format!("read line < {}; exit 7", daemon.file("done"));
    let task = api.start(shell(&script)).await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    assert_eq!(worker.joined.lease, None, "it may come and go");
    let stopping = cancel_softly(&api, &task.id, secs(25), secs(5)).await;
    assert_eq!(stopping.state(), TaskState::Stopping);
    let told = worker.cancelled().await;
    assert_eq!(told.mode(), WorkCancelMode::Soft);
    worker.report(notes(["the tool call is done"])).await;
    gate.open();
    let ended = worker.ended().await;
    assert_eq!(
        (ended.state(), exit_code(&ended)),
        (TaskState::Cancelled, 7)
    );
    assert_eq!(signals_sent(&ended), Vec::<&str>::new());
    proof_of(&ended);
    assert_eq!(ended.progress.unwrap().block_count, 1);
}

/// C18, P7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_result_ends_the_soft_phase_and_is_kept_when_the_tree_is_killed() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut fixture = daemon.run(&api, "ignore TERM pid leader forever").await;
    fixture.process("leader").await;
    let mut worker = Worker::join(&api, join(&fixture.id)).await;
    let begun = Instant::now();
    cancel_softly(&api, &fixture.id, secs(25), millis(300)).await;
    worker.cancelled().await;
    worker.deliver(result(WorkerStatus::Cancelled, "half of it"));
    let mut acknowledged = false;
    loop {
        match worker.next().await {
            Response::Acknowledged(_) => acknowledged = true,
            Response::Cancel(told) => assert_eq!(told.mode(), WorkCancelMode::Final),
            Response::Ended(_) => break,
            other @ (Response::Joined(_) | Response::Admitted(_) | Response::Message(_)) => {
                panic!("{other:?}")
            }
        }
    }
    assert!(acknowledged);
    assert!(
        begun.elapsed().as_secs() < 20,
        "the result ended the soft phase"
    );
    let ended = api.ended(&fixture.id).await;
    fixture.assert_gone();
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert_eq!(signal(&ended).name, "SIGKILL");
    assert_eq!(signals_sent(&ended), ["SIGTERM", "SIGKILL"]);
    assert_eq!(ended.result.as_ref().unwrap().text, "half of it");
    let end = api.history_of(&fixture.id).await.pop().unwrap();
    assert_eq!(end.task.unwrap().result, ended.result, "in the event, too");
}

/// C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_does_not_react_in_time_is_stopped_the_hard_way() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(shell("trap '' TERM; while :; do sleep 1; done"))
        .await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    cancel_softly(&api, &task.id, millis(500), millis(500)).await;
    assert_eq!(worker.cancelled().await.mode(), WorkCancelMode::Soft);
    let told = worker.cancelled().await;
    assert_eq!(told.mode(), WorkCancelMode::Final);
    let ended = api.ended(&task.id).await;
    assert_eq!(signals_sent(&ended), ["SIGTERM", "SIGKILL"]);
    let stop = ended.stop.as_ref().unwrap();
    let at = |signal: &SentSignal| micros(&signal.send_time) - micros(&stop.request_time);
    let sent = stop
        .signals
        .iter()
        .filter(|signal| signal.name != "SIGCONT");
    let sent: Vec<i64> = sent.map(at).collect();
    assert!(sent[0] >= 490_000, "SIGTERM after {} us", sent[0]);
    assert!(sent[1] >= sent[0] + 490_000, "SIGKILL after {} us", sent[1]);
    use TaskEventType::{Created, Ended, LeaderExited, Started, Stopping};
    let mut history = types(&api.history_of(&task.id).await);
    history.retain(|kind| *kind != LeaderExited);
    assert_eq!(history, [Created, Started, Stopping, Stopping, Ended]);
}

/// C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_whose_worker_does_not_listen_gets_its_signal_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let worker = Worker::join(&api, join(&task.id)).await;
    worker.leave(&api).await;
    let ended = api.stop(&task.id).await.task.unwrap();
    assert_eq!(signal(&ended).name, "SIGTERM");
    assert_eq!(ended.stop.unwrap().soft, None);
}

/// C18, P6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_that_asks_by_calls_listens_for_a_minute() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let ask = || ReportProgressRequest {
        task_id: task.id.clone(),
        listens: true,
        ..Default::default()
    };
    let answer = api.raw().report_progress(ask()).await.unwrap().into_inner();
    assert_eq!(answer.cancel, None);
    cancel_softly(&api, &task.id, millis(700), secs(5)).await;
    let answer = api.raw().report_progress(ask()).await.unwrap().into_inner();
    assert_eq!(answer.cancel.unwrap().mode(), WorkCancelMode::Soft);
    let ended = api.ended(&task.id).await;
    assert_eq!(signals_sent(&ended), ["SIGTERM"]);
    assert!(ended.stop.unwrap().soft.unwrap().end_time.is_some());
}

/// C16, C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn force_ends_the_soft_phase() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    cancel_softly(&api, &task.id, secs(60), secs(60)).await;
    worker.cancelled().await;
    let ended = api.kill(&task.id).await.task.unwrap();
    assert_eq!(signals_sent(&ended), ["SIGKILL"]);
}

/// C13, C18: the phases follow from the records and the monotonic clock.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_soft_phase_goes_on_with_the_next_server_on_the_first_ones_clock() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    let worker = Worker::join(&api, join(&task.id)).await;
    let begun = Instant::now();
    cancel_softly(&api, &task.id, secs(3), secs(5)).await;
    daemon.kill9();
    drop(worker);
    daemon.restart().await;
    let api = daemon.api().await;
    let mut worker = Worker::join(&api, join(&task.id)).await;
    let told = worker.cancelled().await;
    if begun.elapsed().as_millis() < 2500 {
        assert_eq!(told.mode(), WorkCancelMode::Soft);
    }
    let ended = api.ended(&task.id).await;
    assert_eq!(signal(&ended).name, "SIGTERM");
    let stop = ended.stop.as_ref().unwrap();
    let term = stop
        .signals
        .iter()
        .find(|sent| sent.name == "SIGTERM")
        .unwrap();
    let after = micros(&term.send_time) - micros(&stop.request_time);
    assert!(after >= 2_990_000, "SIGTERM after {after} us");
    let lasted = micros(&ended.end_time) - micros(&stop.request_time);
    assert!(lasted < 20_000_000, "ended after {lasted} us");
}
