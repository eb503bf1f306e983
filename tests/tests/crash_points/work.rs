//! Workers: from before a record of theirs to after it. The worker comes back, repeats what was not
//! answered, and everything has happened once.

use heeler_tests::{
    Api, Worker, millis,
    request::cancel,
    v1::{work_request::Item, *},
    watch::{ONE_RUN, types},
    worker::{hosted, hosted_as, notes, result},
};

use crate::{at_each_point, doomed, restart_after};

at_each_point! { a_registration_interrupted:
    before_the_intent => "spawn.before-intent", ();
    after_the_intent => "spawn.intent-recorded", ();
    before_the_start_is_committed => "journal.before-commit:2", ();
    after_the_start_is_committed => "journal.committed:2", ();
    before_the_answer => "spawn.started-recorded", ();
}

/// R3, P3, S9
async fn a_registration_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let register = || {
        Item::Register(WorkRegister {
            request_id: "one".into(),
            ..hosted()
        })
    };
    let answer = Worker::begin(&daemon.api().await, register()).await;
    assert!(answer.is_err(), "answered after the death: {answer:?}");
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let mut worker = Worker::begin(&api, register()).await.unwrap();
    let ended = worker.finish(result(WorkerStatus::Ok, "done")).await;
    let tasks = api.all().await;
    assert_eq!(tasks, [ended], "one task, and one alone");
    assert_eq!(types(&api.history_of(&tasks[0].id).await), ONE_RUN);
    follower.assert_whole(&api).await;
}

at_each_point! { a_report_interrupted:
    before_a_report => "work.before-report", ();
    after_a_report => "work.report-recorded", ();
}

/// R3, P1, P9
async fn a_report_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let worker = Worker::register(&daemon.api().await, hosted()).await;
    worker.send(1, Item::Progress(notes(["one"])));
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let mut again = worker.rejoin(&api).await;
    again.send(1, Item::Progress(notes(["one"])));
    again.acknowledged(1).await;
    let inspected = api.inspect(&again.id()).await.unwrap();
    let texts: Vec<_> = inspected.blocks.iter().map(|block| &*block.text).collect();
    assert_eq!(texts, ["one"]);
    again.send(2, Item::Result(result(WorkerStatus::Ok, "")));
    assert_eq!(again.ended().await.progress.unwrap().block_count, 1);
    follower.assert_whole(&api).await;
}

at_each_point! { a_result_interrupted:
    before_a_result => "work.before-result", ();
    before_the_end_is_committed => "journal.before-commit:3", ();
    after_the_end_is_committed => "journal.committed:3", ();
    after_a_result => "work.result-recorded", ();
}

/// R3, P7
async fn a_result_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let mut worker = Worker::register(&daemon.api().await, hosted()).await;
    worker.deliver(result(WorkerStatus::Ok, "42"));
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let mut again = worker.rejoin(&api).await;
    let ended = again.finish(result(WorkerStatus::Ok, "42")).await;
    assert_eq!(ended.state(), TaskState::Completed);
    assert_eq!(ended.result.as_ref().unwrap().text, "42");
    assert_eq!(api.task(&ended.id).await, ended);
    assert_eq!(types(&api.history_of(&ended.id).await), ONE_RUN);
    follower.assert_whole(&api).await;
}

at_each_point! { a_message_interrupted:
    before_a_message => "work.before-message", ();
    after_a_message => "work.message-recorded", ();
    before_a_receipt => "work.before-receipt", ();
    after_a_receipt => "work.receipt-recorded", ();
}

/// R3, P8
async fn a_message_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let mut worker = Worker::register(&api, hosted()).await;
    let id = worker.id();
    // Its answer may be lost with the server.
    let _ = send(&api, &id, "one").await;
    if let Ok(work_response::Item::Message(message)) = worker.try_next().await {
        worker.received(message.number);
    }
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    assert_eq!(send(&api, &id, "one").await.unwrap(), 1, "safe to repeat");
    assert_eq!(send(&api, &id, "two").await.unwrap(), 2);
    let mut again = worker.rejoin(&api).await;
    let mut messages = Vec::new();
    while messages.last().is_none_or(|(number, _)| *number < 2) {
        let message = again.message().await;
        messages.push((message.number, message.text));
    }
    let is_received = point == "work.receipt-recorded";
    let all = [(1, "one".to_owned()), (2, "two".to_owned())];
    assert_eq!(messages, all[usize::from(is_received)..]);
    again.finish(result(WorkerStatus::Ok, "")).await;
    follower.assert_whole(&api).await;
}

async fn send(api: &Api, id: &str, text: &str) -> Result<u64, tonic::Status> {
    let request = SendMessageRequest {
        task_id: id.to_owned(),
        text: text.to_owned(),
        message_id: text.to_owned(),
        ..Default::default()
    };
    let answer = api.raw().send_message(request).await?;
    Ok(answer.into_inner().number)
}

at_each_point! { a_soft_cancel_interrupted:
    at_the_end_of_the_soft_phase => "cancel.soft-over", ();
}

/// R3, C13, P4
async fn a_soft_cancel_interrupted(point: &str, (): ()) {
    let (mut daemon, follower) = doomed(point).await;
    let api = daemon.api().await;
    let register = hosted_as(TaskSpec {
        stop: Some(StopPolicy {
            soft_grace: Some(millis(200)),
            grace: Some(millis(200)),
            ..Default::default()
        }),
        ..Default::default()
    });
    let worker = Worker::register(&api, register).await;
    api.cancel_one(cancel(&worker.id())).await;
    restart_after(&mut daemon, point).await;

    let api = daemon.api().await;
    let ended = api.ended(&worker.id()).await;
    assert_eq!(ended.state(), TaskState::Cancelled);
    assert!(ended.stop.unwrap().forced);
    follower.assert_whole(&api).await;
}
