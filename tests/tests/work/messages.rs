//! Messages: sent to a task, delivered to its worker in order, once.

use heeler_tests::{
    Api, Daemon, Refusal, Worker, shell,
    v1::*,
    worker::{hosted, join, result},
};
use tonic::{Code, Status};

fn message(id: &str, text: &str) -> SendMessageRequest {
    SendMessageRequest {
        task_id: id.to_owned(),
        text: text.to_owned(),
        ..Default::default()
    }
}

async fn try_send(api: &Api, request: SendMessageRequest) -> Result<u64, Status> {
    let answer = api.raw().send_message(request).await?;
    Ok(answer.into_inner().number)
}

async fn send(api: &Api, id: &str, text: &str) -> u64 {
    try_send(api, message(id, text)).await.unwrap()
}

/// P8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_arrive_in_order_with_their_sender() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let first = SendMessageRequest {
        actor: "host".to_owned(),
        ..message(&worker.id(), "look at the tests")
    };
    assert_eq!(try_send(&api, first).await.unwrap(), 1);
    let got = worker.message().await;
    assert_eq!((got.number, &*got.text), (1, "look at the tests"));
    let sender = got.sender.unwrap();
    assert_eq!(
        (&*sender.name, sender.pid),
        ("host", Some(std::process::id() as i32))
    );
    assert!(got.send_time.is_some());
    for number in 2..=40 {
        assert_eq!(
            send(&api, &worker.id(), &format!("m{number}")).await,
            number
        );
    }
    for number in 2..=40 {
        let got = worker.message().await;
        assert_eq!((got.number, got.text), (number, format!("m{number}")));
    }
    worker.finish(result(WorkerStatus::Ok, "")).await;
}

/// P8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn messages_wait_for_a_worker_and_are_delivered_again_until_they_are_received() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    for text in ["one", "two", "three"] {
        send(&api, &task.id, text).await;
    }
    let mut worker = Worker::join(&api, join(&task.id)).await;
    for number in 1..=3 {
        assert_eq!(worker.message().await.number, number);
    }
    worker.received(2);
    // The receipt is handled before what the worker sends next.
    worker.report(ProgressUpdate::default()).await;
    worker.leave(&api).await;
    let mut again = Worker::join(&api, join(&task.id)).await;
    assert_eq!(
        again.message().await.text,
        "three",
        "the others are received"
    );
    send(&api, &task.id, "four").await;
    assert_eq!(again.message().await.number, 4);
    api.kill(&task.id).await;
}

/// P8, S9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_message_id_makes_sending_safe_to_repeat() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let named = |text: &str| SendMessageRequest {
        message_id: "m1".to_owned(),
        ..message(&worker.id(), text)
    };
    let (same, other) = (named("hello"), named("goodbye"));
    assert_eq!(try_send(&api, same.clone()).await.unwrap(), 1);
    assert_eq!(try_send(&api, same.clone()).await.unwrap(), 1);
    let refused = try_send(&api, other.clone()).await;
    let refusal = Refusal::expect(refused, Code::AlreadyExists, "MESSAGE_ID_REUSED");
    assert_eq!(refusal.value("message_id"), "m1");
    let got = worker.message().await;
    assert_eq!((got.number, &*got.message_id), (1, "m1"));
    worker.received(1);
    // The receipt is handled before what the worker sends next.
    worker.report(ProgressUpdate::default()).await;
    assert_eq!(
        try_send(&api, same).await.unwrap(),
        1,
        "also once it is received"
    );
    let refused = try_send(&api, other).await;
    Refusal::expect(refused, Code::AlreadyExists, "MESSAGE_ID_REUSED");
    assert_eq!(send(&api, &worker.id(), "next").await, 2);
    assert_eq!(worker.message().await.number, 2, "nothing twice");
    worker.finish(result(WorkerStatus::Ok, "")).await;
}

/// P8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_mailbox_is_bounded_by_messages_and_by_bytes() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exec sleep 1000")).await;
    for number in 1..=100 {
        assert_eq!(send(&api, &task.id, "x").await, number);
    }
    let full = try_send(&api, message(&task.id, "one too many")).await;
    let refusal = Refusal::expect(full, Code::ResourceExhausted, "MAILBOX_FULL");
    assert_eq!(
        (refusal.value("waiting"), refusal.value("max")),
        ("100", "100")
    );

    let large = api.start(shell("exec sleep 1000")).await;
    let text = "é".repeat(32 * 1024);
    for _ in 0..16 {
        send(&api, &large.id, &text).await;
    }
    let full = try_send(&api, message(&large.id, "x")).await;
    let refusal = Refusal::expect(full, Code::ResourceExhausted, "MAILBOX_FULL");
    assert_eq!(refusal.value("waiting_bytes"), (1 << 20).to_string());
    let mut worker = Worker::join(&api, join(&large.id)).await;
    for number in 1..=16 {
        let got = worker.message().await;
        assert_eq!((got.number, &got.text), (number, &text));
    }
    worker.received(1);
    worker.report(ProgressUpdate::default()).await;
    send(&api, &large.id, "there is room again").await;
    api.kill(&task.id).await;
    api.kill(&large.id).await;
}

/// P8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_finished_or_unknown_task_takes_no_message() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(shell("exit 0")).await;
    api.ended(&task.id).await;
    let late = try_send(&api, message(&task.id, "too late")).await;
    let refusal = Refusal::expect(late, Code::FailedPrecondition, "TASK_FINISHED");
    assert_eq!(refusal.value("state"), "COMPLETED");
    let unknown = try_send(&api, message("agent-aaaaaaaaaa", "hello")).await;
    Refusal::expect(unknown, Code::NotFound, "TASK_NOT_FOUND");
}
