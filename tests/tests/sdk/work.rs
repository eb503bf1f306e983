//! The Rust SDK as a worker: hosted tasks, tokens, progress, messages, reconnects.

use std::time::Duration;

use heeler_client::{
    CancelOptions, Client, Error, Hosted, Progress, Work, WorkResult,
    v1::{
        BackgroundTask, EndReason, ErrorReason, SendMessageRequest, TaskState, WorkCancelMode,
        WorkerStatus,
    },
};
use heeler_tests::{Daemon, within};

async fn client(daemon: &Daemon) -> Client {
    let address = daemon.address().parse().unwrap();
    Client::connect(address).await.unwrap()
}

fn text(task: &BackgroundTask) -> &str {
    &task.result.as_ref().unwrap().text
}

/// P2, P7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_hosted_body_reports_and_its_value_is_the_result() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let hosted = Hosted::new().session("s1").name("review");
    let hosted = client.host(hosted, |work| async move {
        let step = Progress::new()
            .intent("reads")
            .percent(50)
            .count("files", 3);
        work.report(step.tool_call("grep", "-rn TODO").note("two findings"))
            .await;
        Ok::<_, Error>("two findings")
    });
    let task = within("the hosted task", hosted).await.unwrap();
    assert_eq!(
        (task.state(), text(&task)),
        (TaskState::Completed, "two findings")
    );
    let progress = task.progress.unwrap();
    assert_eq!((&*progress.intent, progress.block_count), ("reads", 2));
    let failed = client.host(Hosted::new(), |_| async { Err::<(), _>("it broke") });
    let failed = within("the hosted task", failed).await.unwrap();
    assert_eq!(failed.end_reason(), EndReason::WorkerFailed);
    assert_eq!(text(&failed), "it broke");
}

/// P2, C18
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancel_fires_the_soft_token_and_then_the_other_one() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let hosted = Hosted::new()
        .session("s1")
        .soft_grace(Duration::from_millis(300))
        .grace(Duration::from_secs(20));
    let host = client.host(hosted, |work: Work| async move {
        work.stopping().cancelled().await;
        let soft = work.cancel_request().unwrap();
        assert_eq!(soft.mode(), WorkCancelMode::Soft);
        assert!(!work.cancelled().is_cancelled());
        work.cancelled().cancelled().await;
        WorkResult::cancelled(format!("stopped: {}", soft.reason))
    });
    let cancel = async {
        let session = client.session("s1").unwrap();
        while session.counts().await.unwrap().hosted == 0 {}
        let options = CancelOptions::graceful().reason("superseded");
        session.cancel(options).await.unwrap()
    };
    let (task, cancelled) = within("the cancel", async { tokio::join!(host, cancel) }).await;
    let task = task.unwrap();
    assert_eq!(
        (task.state(), text(&task)),
        (TaskState::Cancelled, "stopped: superseded")
    );
    assert_eq!(cancelled[0].task.as_ref(), Some(&task));
    assert!(!task.stop.unwrap().forced);
}

/// P4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_body_that_does_not_stop_learns_that_its_task_has_ended() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let work = client.register(Hosted::new()).await.unwrap();
    let killed = work.task().cancel(CancelOptions::force()).await.unwrap();
    within("the end", work.cancelled().cancelled()).await;
    let ended = work.finish("too late").await.unwrap();
    assert_eq!(killed.task.as_ref(), Some(&ended));
    assert_eq!((ended.result, ended.stop.unwrap().forced), (None, true));
}

/// P3, P8, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_worker_goes_on_across_a_crash_and_loses_and_repeats_nothing() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let work = client.register(Hosted::new()).await.unwrap();
    let id = work.task().id().to_owned();
    let send = |number: u32| {
        let request = SendMessageRequest {
            task_id: id.clone(),
            text: format!("m{number}"),
            message_id: format!("id{number}"),
            ..SendMessageRequest::default()
        };
        client.send_message(request)
    };
    work.report(Progress::new().note("one")).await;
    send(1).await.unwrap();
    assert_eq!(work.message().await.unwrap().text, "m1");
    send(2).await.unwrap();
    daemon.kill9();
    for text in ["two", "three", "four"] {
        work.report(Progress::new().note(text)).await;
    }
    daemon.restart().await;
    send(3).await.unwrap();
    for expected in ["m2", "m3"] {
        let message = within("a message", work.message()).await.unwrap();
        assert_eq!(message.text, expected);
    }
    let task = within("the end", work.finish("done")).await.unwrap();
    assert_eq!(
        (task.state(), task.progress.unwrap().block_count),
        (TaskState::Completed, 4)
    );
    let blocks = client.task(&id).inspect().await.unwrap().blocks;
    let texts: Vec<&str> = blocks.iter().map(|block| &*block.text).collect();
    assert_eq!(texts, ["one", "two", "three", "four"]);
}

/// P3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_lease_is_kept_by_itself_and_a_dropped_worker_ends_its_task() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let lease = Duration::from_secs(1);
    let work = client.register(Hosted::new().lease(lease)).await.unwrap();
    let task = work.task().clone();
    let kept = task.wait_timeout(3 * lease).await.unwrap();
    assert_eq!(kept, None, "it is live after three leases");
    drop(work);
    let ended = within("the end", task.wait()).await.unwrap();
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert_eq!(ended.result.unwrap().status(), WorkerStatus::Cancelled);
}

/// X1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_body_of_a_queued_task_runs_once_it_is_admitted() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let first = client.register(Hosted::new().queue("q")).await.unwrap();
    let second = client.host(Hosted::new().queue("q"), |_| async { "second" });
    let finish_first = async {
        let session = client.clone();
        while session.queues().await.unwrap().queues[0].waiting == 0 {}
        first.finish("first").await
    };
    let (second, first) = within("both", async { tokio::join!(second, finish_first) }).await;
    let (second, first) = (second.unwrap(), first.unwrap());
    assert!(second.start_time.unwrap().seconds >= first.end_time.unwrap().seconds);
    assert!(second.revision > first.revision);
}

/// P3, S2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_refusal_is_typed_and_a_replaced_worker_is_told() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let refused = client.join("hosted-aaaaaaaaaa").await.unwrap_err();
    assert!(refused.is(ErrorReason::TaskNotFound), "{refused:?}");
    let hosted = Hosted::new().lease(Duration::ZERO);
    let refused = client.register(hosted).await.unwrap_err();
    assert_eq!(refused.refusal().unwrap().fields[0].field, "register.lease");
    let named = Hosted::new().request_id("r1");
    let first = client.register(named.clone()).await.unwrap();
    let second = client.register(named).await.unwrap();
    within("the replacement", first.cancelled().cancelled()).await;
    let replaced = first.finish("by the first").await.unwrap_err();
    assert!(replaced.is(ErrorReason::WorkerReplaced), "{replaced:?}");
    let task = within("the end", second.finish("by the second"))
        .await
        .unwrap();
    assert_eq!(text(&task), "by the second");
    assert!(
        client.current().await.unwrap().is_none(),
        "outside of a task"
    );
}
