//! The Rust SDK: handles, errors, and streams that resume after a crash.

use std::time::Duration;

use heeler_client::{
    Attach, AttachEnded, AttachItem, AttachOptions, CancelOptions, Chunk, Client, DetachOptions,
    Error, Spawn, StreamExt, WatchItem, WatchOptions,
    v1::{
        AttachEndReason, CancelOutcome, DetachOutcome, DisconnectAction, OrphanPolicy, Placement,
        TaskEvent, TaskEventType, TaskState,
    },
};
use heeler_tests::{
    Daemon, TaskSpecExt as _,
    outcome::{exit_code, proof_in},
    within,
};

async fn client(daemon: &Daemon) -> Client {
    Client::connect(daemon.address().parse().unwrap())
        .await
        .unwrap()
}

/// S1, L4, O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handle_spawns_waits_reads_and_removes() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let task = client
        .spawn(Spawn::shell("echo out; echo err >&2; exit 4").session("s"))
        .await
        .unwrap();
    let ended = within("the end of the task", task.wait()).await.unwrap();
    assert_eq!(exit_code(&ended), 4);
    let mut output = task.output();
    let mut all = Vec::new();
    while let Some(chunk) = within("output", output.next()).await {
        all.extend_from_slice(&chunk.unwrap().data);
    }
    let mut lines: Vec<&str> = std::str::from_utf8(&all).unwrap().lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["err", "out"]);
    task.remove().await.unwrap();
    let error = task.get().await.unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error:?}");
}

/// C1, C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handle_cancels_and_dropping_it_does_nothing() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    let id = task.id().to_owned();
    drop(task);
    let task = client.task(&id);
    assert_eq!(task.get().await.unwrap().state(), TaskState::Running);
    assert_eq!(
        task.wait_timeout(Duration::from_millis(50)).await.unwrap(),
        None
    );
    let result = task
        .cancel(CancelOptions::graceful().reason("r"))
        .await
        .unwrap();
    assert_eq!(result.task.as_ref().unwrap().state(), TaskState::Cancelled);
    proof_in(&result);
    let again = task.cancel(CancelOptions::graceful()).await.unwrap();
    assert_eq!(again.outcome(), CancelOutcome::AlreadyFinished);
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_watch_resumes_across_crashes_without_loss_or_repeats() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let mut watch = client.watch(WatchOptions::after(0));
    let mut seen: Vec<TaskEvent> = Vec::new();
    let mut last = String::new();
    for _ in 0..4 {
        for _ in 0..3 {
            last = client
                .spawn(Spawn::argv(["true"]))
                .await
                .unwrap()
                .id()
                .to_owned();
        }
        // Some events are read now, some after the crash.
        for _ in 0..4 {
            seen.push(next(&mut watch).await);
        }
        daemon.kill9();
        daemon.restart().await;
    }
    let is_last = |event: &TaskEvent| {
        event.r#type() == TaskEventType::Ended && event.task.as_ref().unwrap().id == last
    };
    while !seen.last().is_some_and(is_last) {
        seen.push(next(&mut watch).await);
    }
    let api = daemon.api().await;
    for task in api.all().await {
        api.ended(&task.id).await;
    }
    let history = api.history().await;
    while seen.len() < history.len() {
        seen.push(next(&mut watch).await);
    }
    assert_eq!(seen, history);
}

async fn next(watch: &mut heeler_client::Watch) -> TaskEvent {
    loop {
        match within("an event", watch.next()).await.unwrap().unwrap() {
            WatchItem::Event(event) => return event,
            WatchItem::Bookmark(_) => {}
            WatchItem::Initial(task) => panic!("no initial state was asked for: {task:?}"),
        }
    }
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_call_during_a_restart_is_retried() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await.retry_for(heeler_tests::DEADLINE);
    let task = client.spawn(Spawn::argv(["sleep", "60"])).await.unwrap();
    daemon.kill9();
    let call = tokio::spawn(async move { task.get().await });
    daemon.restart().await;
    let found = within("an answer", call).await.unwrap().unwrap();
    assert_eq!(found.state(), TaskState::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_missing_daemon_is_a_not_running_error() {
    let daemon = Daemon::builder().prepare();
    let error = Client::connect(daemon.address().parse().unwrap())
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NotRunning { .. }), "{error:?}");
}

/// Reads an attachment to its end.
async fn ended(attach: &mut Attach) -> (String, AttachEnded) {
    let mut all = Vec::new();
    let sink = |chunk: Chunk| {
        assert_eq!(chunk.offset, all.len() as u64, "a loss or a repeat");
        all.extend_from_slice(&chunk.data);
    };
    let ended = within("the end of the attachment", attach.ended(sink))
        .await
        .unwrap();
    (String::from_utf8(all).unwrap(), ended)
}

async fn first_output(attach: &mut Attach) {
    let is_output = |item| matches!(item, AttachItem::Output(_));
    while !is_output(within("output", attach.next()).await.unwrap().unwrap()) {}
}

/// F11
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_run_gives_the_output_and_then_the_end() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let mut run = client
        .run(Spawn::shell("echo one; exit 3").orphan_policy(OrphanPolicy::Kill))
        .await
        .unwrap();
    let (output, end) = ended(&mut run).await;
    assert_eq!(
        (output.as_str(), end.reason),
        ("one\n", AttachEndReason::Finished)
    );
    assert_eq!(end.task.foreground().timeout, Some(heeler_tests::secs(60)));
    assert_eq!(exit_code(&end.task), 3);
}

/// F13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_abort_stops_the_task_with_its_reason_and_an_end_comes_before_a_later_one() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let spawn = Spawn::shell("echo one; exec sleep 60");
    let mut run = client.run(spawn).await.unwrap();
    first_output(&mut run).await;
    let reason = format!("a key: {}ü", "x".repeat(4088));
    let abort = std::future::ready(reason.clone());
    let ended = within("its end", run.ended_unless(abort, |_| ())).await;
    let task = ended.unwrap().task;
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(
        task.stop.unwrap().reason,
        reason[..4095],
        "cut where a character begins"
    );
    let mut run = client.run(Spawn::shell("exit 3")).await.unwrap();
    let never = std::future::pending::<String>();
    let ended = within("its end", run.ended_unless(never, |_| ())).await;
    assert_eq!(exit_code(&ended.unwrap().task), 3);
}

/// F1, F5, F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_ends_attachments_and_waits_out_of_the_foreground() {
    let daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let spawn = Spawn::shell("echo one; exec sleep 60").session("s");
    let mut run = client.run(spawn).await.unwrap();
    first_output(&mut run).await;
    let task = run.task().clone();
    let waiting = tokio::spawn({
        let task = task.clone();
        async move { task.wait_out_of_foreground().await }
    });
    let options = DetachOptions::new().reason("r").actor("a");
    let result = client.detach_session("s", options.clone()).await.unwrap();
    assert_eq!(result[0].outcome(), DetachOutcome::Detached);
    let end = within("the end of the attachment", run.ended(|_| {}))
        .await
        .unwrap();
    assert_eq!(end.reason, AttachEndReason::Detached);
    assert_eq!(end.task.detachment.unwrap().reason, "r");
    let waited = within("the wait", waiting).await.unwrap().unwrap();
    assert_eq!(waited.placement(), Placement::Background);

    let again = task.detach(options.clone()).await.unwrap();
    assert_eq!(again.outcome(), DetachOutcome::AlreadyBackground);
    assert_eq!(client.detach_session("s", options).await.unwrap(), []);
    // An attach for the foreground only ends at once on a background task.
    let mut late = task.attach_with(AttachOptions::from_offset(0).foreground_only());
    let (output, end) = ended(&mut late).await;
    assert_eq!(
        (output.as_str(), end.reason),
        ("one\n", AttachEndReason::Detached)
    );
    assert_eq!(task.get().await.unwrap().state(), TaskState::Running);
}

/// F6, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attachment_resumes_across_crashes_without_loss_or_repeats() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await;
    let (mut gate, path) = (daemon.gate("gate"), daemon.file("gate"));
    let script = format!("for i in 1 2 3 4; do echo $i; read line < {path}; done");
    let mut run = client.run(Spawn::shell(script)).await.unwrap();
    let mut all = Vec::new();
    for round in 1..=4_u8 {
        let line = format!("{round}\n");
        while !all.ends_with(line.as_bytes()) {
            match within("output", run.next()).await.unwrap().unwrap() {
                AttachItem::Attached(_) => assert!(all.is_empty(), "attached twice"),
                AttachItem::Output(chunk) => {
                    assert_eq!(chunk.offset, all.len() as u64, "a loss or a repeat");
                    all.extend_from_slice(&chunk.data);
                }
                AttachItem::Ended(ended) => panic!("{ended:?}"),
            }
        }
        daemon.kill9();
        daemon.restart().await;
        gate.write("\n");
    }
    let end = within("the end of the attachment", run.ended(|_| {}))
        .await
        .unwrap();
    assert_eq!(end.task.state(), TaskState::Completed);
    assert_eq!(all, b"1\n2\n3\n4\n");
}

/// F6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_attachment_whose_task_was_detached_while_disconnected_ends() {
    let mut daemon = Daemon::start().await;
    let client = client(&daemon).await.retry_for(heeler_tests::DEADLINE);
    let spawn = Spawn::shell("echo one; exec sleep 60").on_disconnect(DisconnectAction::Keep);
    let mut run = client.run(spawn).await.unwrap();
    first_output(&mut run).await;
    // It is not polled meanwhile, so it cannot reconnect before the detach.
    daemon.kill9();
    daemon.restart().await;
    run.task().detach(DetachOptions::new()).await.unwrap();
    let end = within("the end of the attachment", run.ended(|_| {}))
        .await
        .unwrap();
    assert_eq!(end.reason, AttachEndReason::Detached);
}
