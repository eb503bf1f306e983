//! The end of a server that was asked to end: what becomes of its tasks, and of whoever is connected.

use std::{fs, time::Duration};

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, millis, secs,
    v1::{watch_events_response::Item, *},
    watch::task_of,
    within,
};
use tonic::Code;

fn stop(grace: prost_types::Duration) -> ShutdownRequest {
    ShutdownRequest {
        tasks: ShutdownTasks::Stop.into(),
        grace: Some(grace),
        reason: "enough".to_owned(),
        ..Default::default()
    }
}

/// That a task was stopped with its server, once, and how.
async fn assert_stopped_with_the_server(api: &Api, id: &str) {
    let task = api.task(id).await;
    let (state, reason) = (task.state(), task.end_reason());
    assert_eq!(
        (state, reason),
        (TaskState::Cancelled, EndReason::ServerShutdown)
    );
    let stop = task.stop.unwrap();
    assert_eq!(stop.cause(), EndReason::ServerShutdown);
    assert!(stop.proof.unwrap().survivors.is_empty());
    let history = api.history_of(id).await;
    let ends = history
        .iter()
        .filter(|event| event.r#type() == TaskEventType::Ended);
    assert_eq!(ends.count(), 1);
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn shutdown_leaves_tasks_running_and_returns_when_the_daemon_is_gone() {
    let mut daemon = Daemon::start().await;
    let fixture = daemon.run(&daemon.api().await, "print here forever").await;
    let said = daemon.heeler(["shutdown"]).await.ok();
    assert_eq!(said.stdout, "the daemon has ended; tasks that run on: 1\n");
    let status = daemon.exited(Duration::ZERO).expect("gone by now");
    assert_eq!(status.code(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists(), "the address is free");
    let leader = fixture.process("leader").await;
    assert!(leader.is_alive());

    daemon.restart().await;
    let task = daemon.api().await.task(&fixture.id).await;
    assert_eq!(
        (task.state(), task.leader.unwrap().pid),
        (TaskState::Running, leader.pid)
    );
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_that_stops_tasks_proves_each_gone_and_tells_it_to_all_who_wait() {
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
    let request = WaitRequest {
        task_ids: ids.clone(),
        ..Default::default()
    };
    let waiting = api.clone();
    let wait = tokio::spawn(async move { waiting.wait(request).await });

    let args = ["shutdown", "--stop-tasks", "--grace", "200ms", "--json"];
    let said = daemon.heeler(args).await.ok();
    assert_eq!(said.json()["stoppedTasks"], 3, "{said:?}");
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
    assert_eq!(ended, expected, "each end was told before the stream's");
    assert_eq!(end.code(), Code::Unavailable, "{end:?}");
    assert!(wait.await.unwrap().unwrap().satisfied);

    daemon.restart().await;
    let api = daemon.api().await;
    for id in &ids {
        assert_stopped_with_the_server(&api, id).await;
    }
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn while_tasks_are_being_stopped_calls_are_answered_and_spawns_refused() {
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
    // The caller leaves; what it asked for stands.
    shutdown.abort();
    assert!(shutdown.await.unwrap_err().is_cancelled());
    assert_eq!(api.all().await.len(), 1);
    let killed = api.stop(&fixture.id, CancelMode::Force).await;
    assert_eq!(
        killed.task.unwrap().end_reason(),
        EndReason::ServerShutdown,
        "whoever asked first gave the reason"
    );
    daemon.ended();
    daemon.no_processes().await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_amid_spawns_leaves_nothing_of_any_of_them() {
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
                    // Half of them by the path that remembers requests.
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
        assert_stopped_with_the_server(&api, id).await;
    }
    let stopped = all
        .iter()
        .filter(|task| task.end_reason() == EndReason::ServerShutdown);
    assert_eq!(stopped.count(), response.stopped_tasks as usize);
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sigterm_stops_every_task_where_serve_was_told_so() {
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
    assert_stopped_with_the_server(&daemon.api().await, &fixture.id).await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn where_there_is_no_daemon_shutdown_says_so_and_starts_none() {
    let daemon = Daemon::builder().prepare();
    let said = daemon.heeler(["shutdown", "--stop-tasks"]).await.ok();
    assert_eq!(said.stdout, "");
    assert!(said.stderr.contains("there is nothing to end"), "{said:?}");
    assert!(!daemon.socket().exists());
    assert!(!daemon.path("xdg-state").exists(), "nothing was made");
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_that_cannot_be_understood_changes_nothing() {
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
async fn an_upgrade_in_place_finds_the_same_tasks_and_their_output_goes_on() {
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
    // Whatever it writes while no daemon is there is kept by its shim.
    gate.open();

    daemon.replace_program();
    daemon.restart().await;
    let new = fs::read_link(format!("/proc/{}/exe", daemon.pid())).unwrap();
    assert_ne!(old, new, "another file of the program");
    let api = daemon.api().await;
    let task = api.task(&fixture.id).await;
    assert_eq!(task.leader.as_ref().unwrap().pid, leader.pid);
    assert_eq!(task, before, "the same in every respect");
    let written = async {
        while api.lines(&fixture.id).await.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    within("the output goes on", written).await;
    assert_eq!(api.lines(&fixture.id).await, ["before", "after"]);
    assert_eq!(api.revision().await, revision, "nothing has happened to it");
}
