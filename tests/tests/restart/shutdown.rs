//! Shutdown: the tasks, the connected clients, and upgrades.

use std::{fs, time::Duration};

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, millis,
    outcome::proven,
    request::{cancel, grace, wait},
    secs,
    v1::{watch_events_response::Item, *},
    watch::{count, task_of},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
};
use tonic::Code;

use super::assert_taken_back;

fn stop(grace: prost_types::Duration) -> ShutdownRequest {
    ShutdownRequest {
        tasks: ShutdownTasks::Stop.into(),
        grace: Some(grace),
        reason: "enough".to_owned(),
        ..Default::default()
    }
}

/// Asserts that a task was stopped once, by the shutdown, and proven gone.
async fn assert_stopped_by_shutdown(api: &Api, id: &str) {
    let task = api.task(id).await;
    let (state, reason) = (task.state(), task.end_reason());
    assert_eq!(
        (state, reason),
        (TaskState::Cancelled, EndReason::ServerShutdown)
    );
    let stop = task.stop.unwrap();
    assert_eq!(stop.cause(), EndReason::ServerShutdown);
    proven(stop.proof.as_ref());
    assert_eq!(count(&api.history_of(id).await, TaskEventType::Ended), 1);
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shutdown_leaves_tasks_running_and_returns_after_the_daemons_exit() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "print here forever").await;
    let result = daemon.heeler(["shutdown"]).await.ok();
    assert_eq!(
        result.stdout,
        "the daemon has exited; tasks still running: 1\n"
    );
    let status = daemon.exited(Duration::ZERO).expect("an exit status");
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
    assert_taken_back(&mut daemon, &fixture).await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_that_stops_tasks_proves_each_gone_and_delivers_the_ends() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut fixtures = vec![
        daemon.run(&api, "pid ready forever").await,
        daemon
            .run(
                &api,
                "ignore TERM fork [ setsid pid ready forever ] forever",
            )
            .await,
        daemon
            .run(&api, "double-fork [ setsid pid ready forever ] forever")
            .await,
    ];
    for fixture in &fixtures {
        fixture.process("ready").await;
    }
    let ids: Vec<String> = fixtures.iter().map(|fixture| fixture.id.clone()).collect();
    let mut watch = api.watch_after(api.revision().await).await;
    watch.bookmark().await;
    let request = wait(ids.clone());
    let waiting = api.clone();
    let ends = tokio::spawn(async move { waiting.wait(request).await });

    let args = ["shutdown", "--stop-tasks", "--grace", "200ms", "--json"];
    let result = daemon.heeler(args).await.ok();
    assert_eq!(result.json()["stoppedTasks"], 3, "{result:?}");
    daemon.ended();
    for fixture in &mut fixtures {
        fixture.assert_gone();
    }
    let mut ended = Vec::new();
    let end = loop {
        match watch.try_next().await {
            Ok(Item::Event(event)) if event.r#type() == TaskEventType::Ended => {
                ended.push(task_of(&event).id.clone());
            }
            Ok(Item::Event(_) | Item::Bookmark(_) | Item::Initial(_)) => {}
            Err(status) => break status,
        }
    };
    ended.sort();
    let mut expected = ids.clone();
    expected.sort();
    assert_eq!(
        ended, expected,
        "an end was not delivered before the stream closed"
    );
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    assert!(ends.await.unwrap().unwrap().satisfied);

    daemon.restart().await;
    let api = daemon.api().await;
    for id in &ids {
        assert_stopped_by_shutdown(&api, id).await;
    }
}

/// R7, C2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_does_not_wait_for_the_long_grace_of_an_earlier_cancel() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let patient = CancelRequest {
        how: grace(secs(3600)),
        ..cancel(&fixture.id)
    };
    api.cancel_one(patient).await;
    // Without a grace a second cancel leaves that of the first one.
    api.cancel_one(cancel(&fixture.id)).await;
    let args = ["shutdown", "--stop-tasks", "--grace", "0s", "--json"];
    let result = daemon.heeler(args).await.ok();
    assert_eq!(result.json()["stoppedTasks"], 1, "{result:?}");
    daemon.ended();
    fixture.assert_gone();
    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_eq!(
        task.end_reason(),
        EndReason::Cancelled,
        "as first asked for"
    );
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn during_the_stop_calls_are_answered_and_spawn_is_refused() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "ignore TERM pid ready forever").await;
    fixture.process("ready").await;
    let mut watch = api.watch_after(api.revision().await).await;
    let caller = api.clone();
    let shutdown = tokio::spawn(async move { caller.shutdown(stop(secs(3600))).await });
    watch.until_of(&fixture.id, TaskEventType::Stopping).await;

    let refused = api.spawn(daemon.script("forever")).await;
    Refusal::expect(refused, Code::Unavailable, "NOT_SERVING");
    let task = api.task(&fixture.id).await;
    assert_eq!(task.state(), TaskState::Stopping);
    assert_eq!(task.stop.unwrap().reason, "enough");
    // The shutdown goes on without its caller.
    shutdown.abort();
    assert!(shutdown.await.unwrap_err().is_cancelled());
    assert_eq!(api.all().await.len(), 1);
    let killed = api.kill(&fixture.id).await;
    assert_eq!(
        killed.task.unwrap().end_reason(),
        EndReason::ServerShutdown,
        "the first request gives the reason"
    );
    daemon.ended();
    daemon.no_processes().await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_during_spawns_leaves_no_process() {
    let mut daemon = Daemon::start().await;
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..4 {
        let api = daemon.api().await;
        let request = daemon.script("forever");
        calls.spawn(async move {
            let mut answered = Vec::new();
            loop {
                let request = request
                    .clone()
                    // Half of them have a request id.
                    .with_request_id(match n % 2 {
                        0 => String::new(),
                        _ => format!("{n}-{}", answered.len()),
                    });
                match api.spawn(request).await {
                    Ok(answer) => answered.push(answer.task.unwrap().id),
                    Err(_) => return answered,
                }
            }
        });
    }
    let api = daemon.api().await;
    let mut watch = api.watch_after(0).await;
    watch.until(|event| event.revision >= 30).await;
    let response = api.shutdown(stop(millis(0))).await.unwrap();
    assert_eq!(response.live_tasks, 0, "{response:?}");
    daemon.ended();
    let answered: Vec<String> = calls.join_all().await.into_iter().flatten().collect();
    daemon.no_processes().await;

    daemon.restart().await;
    let api = daemon.api().await;
    let all = api.all().await;
    assert_eq!(api.server().await.live_tasks, 0);
    for id in &answered {
        assert_stopped_by_shutdown(&api, id).await;
    }
    let stopped = all
        .iter()
        .filter(|task| task.end_reason() == EndReason::ServerShutdown);
    assert_eq!(stopped.count(), response.stopped_tasks as usize);
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sigterm_stops_every_task_with_stop_tasks_on_exit() {
    let mut daemon = Daemon::builder().arg("--stop-tasks-on-exit").start().await;
    let api = daemon.api().await;
    let script = "fork [ setsid pid child forever ] pid ready forever";
    let mut fixture = daemon.run(&api, script).await;
    fixture.processes(&["ready", "child"]).await;
    let mut watch = api.watch_after(api.revision().await).await;
    watch.bookmark().await;
    daemon.terminate();
    fixture.assert_gone();
    watch.until_of(&fixture.id, TaskEventType::Ended).await;

    daemon.restart().await;
    assert_stopped_by_shutdown(&daemon.api().await, &fixture.id).await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shutdown_without_a_daemon_reports_it_and_starts_none() {
    let daemon = Daemon::builder().prepare();
    let result = daemon.heeler(["shutdown", "--stop-tasks"]).await.ok();
    assert_eq!(result.stdout, "");
    assert!(result.stderr.contains("nothing to shut down"), "{result:?}");
    assert!(!daemon.socket().exists());
    assert!(
        !daemon.path("xdg-state").exists(),
        "a state directory was created"
    );
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_invalid_shutdown_request_changes_nothing() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let bad = [
        (
            "grace",
            ShutdownRequest {
                grace: Some(secs(1)),
                ..Default::default()
            },
        ),
        ("grace", stop(secs(-1))),
        (
            "tasks",
            ShutdownRequest {
                tasks: 99,
                ..Default::default()
            },
        ),
        (
            "reason",
            ShutdownRequest {
                reason: "x".repeat(5000),
                ..Default::default()
            },
        ),
    ];
    for (field, request) in bad {
        let refused = api.shutdown(request).await;
        let refusal = Refusal::expect(refused, Code::InvalidArgument, "INVALID_FIELD");
        assert_eq!(refusal.fields, [field]);
    }
    let fixture = daemon.run(&api, "forever").await;
    assert_eq!(api.task(&fixture.id).await.state(), TaskState::Running);
    api.stop_everything().await.unwrap();
    api.shutdown(ShutdownRequest::default()).await.unwrap();
    daemon.ended();
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_upgrade_in_place_keeps_tasks_and_their_output() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print before pid ready gate {} print after forever",
        daemon.file("gate")
    );
    let fixture = daemon.run(&api, &script).await;
    let leader = fixture.process("ready").await;
    let before = api.task(&fixture.id).await;
    let revision = api.revision().await;
    let old = fs::read_link(format!("/proc/{}/exe", daemon.pid())).unwrap();
    daemon.heeler(["shutdown"]).await.ok();
    daemon.ended();
    // The shim keeps the output that is written without a daemon.
    gate.open();

    daemon.replace_program();
    daemon.restart().await;
    let new = fs::read_link(format!("/proc/{}/exe", daemon.pid())).unwrap();
    assert_ne!(old, new, "the same file of the program");
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_eq!(task.leader.as_ref().unwrap().pid, leader.pid);
    assert_eq!(task, before, "the task has changed");
    api.output_reaches(&fixture.id, "before\nafter\n".len() as u64)
        .await;
    assert_eq!(api.lines(&fixture.id).await, ["before", "after"]);
    assert_eq!(api.revision().await, revision, "an event was recorded");
}

/// R7: a client whose write fails may drop the answer that it was about to read.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_that_the_server_ends_can_be_written_to_until_its_client_has_read_the_end() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    const PING: u8 = 6;
    const ACK: u8 = 1;
    let mut daemon = Daemon::start().await;
    let mut connection = UnixStream::connect(daemon.socket()).await.unwrap();
    connection.write_all(PREFACE).await.unwrap();
    let api = daemon.api().await;
    api.shutdown(ShutdownRequest::default()).await.unwrap();
    let mut head = [0; 9];
    while connection.read_exact(&mut head).await.is_ok() {
        let [0, 0, length, kind, flags, ..] = head else {
            panic!("a long frame: {head:?}");
        };
        let mut payload = vec![0; length.into()];
        connection.read_exact(&mut payload).await.unwrap();
        if (kind, flags & ACK) == (PING, 0) {
            head[4] = ACK;
            let answer = [&head[..], &payload].concat();
            connection.write_all(&answer).await.unwrap();
        }
    }
    connection
        .write_all(&[0, 0, 8, PING, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    drop(connection);
    daemon.exited(Duration::from_secs(10)).expect("an exit");
}
