//! A server is killed or ended, and the next one takes its tasks back.

use std::{collections::HashMap, error::Error as _};

use heeler_tests::{
    Api, Daemon, eventually,
    outcome::{exit_code, outcome},
    v1::{outcome::Result as Ended, *},
    watch::{ONE_RUN, is_of},
};

use super::assert_taken_back;

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_crash_live_tasks_go_on_and_ends_meanwhile_have_their_true_outcome() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let path = daemon.file("gate");
    let mut live = Vec::new();
    for n in 0..3 {
        live.push(
            daemon
                .run(
                    &api,
                    &format!("print live-{n} fork [ pid child forever ] pid ready forever"),
                )
                .await,
        );
    }
    let mut ending = Vec::new();
    for code in [0, 1, 42, 255] {
        let script = format!("print before gate {path} print after exit {code}");
        ending.push((daemon.run(&api, &script).await, Ended::ExitCode(code)));
    }
    let killed = daemon.run(&api, &format!("gate {path} die KILL")).await;
    let signal = SignalOutcome {
        number: 9,
        name: "SIGKILL".into(),
        core_dumped: false,
    };
    ending.push((killed, Ended::Signal(signal)));
    let mut before = HashMap::new();
    for fixture in &live {
        fixture.processes(&["ready", "child"]).await;
        before.insert(fixture.id.clone(), api.task(&fixture.id).await);
    }
    let seen = api.history().await;

    daemon.kill9();
    gate.open();
    for (fixture, _) in &ending {
        let leader = fixture.process("leader").await;
        eventually("an end without a server", || !leader.is_alive()).await;
    }
    daemon.restart().await;

    let api = daemon.api().await;
    for fixture in &live {
        let task = api.task(&fixture.id).await;
        assert_eq!(task, before[&fixture.id], "the task has changed");
        assert!(
            fixture
                .processes(&["leader", "child"])
                .await
                .iter()
                .all(|one| one.is_alive())
        );
        assert!(api.lines(&fixture.id).await[0].starts_with("live-"));
    }
    for (fixture, expected) in &ending {
        let task = api.ended(&fixture.id).await;
        assert_eq!(outcome(&task), expected);
        let lines = match expected {
            Ended::ExitCode(_) => vec!["before", "after"],
            Ended::Signal(_) | Ended::SpawnError(_) | Ended::Unknown(_) | Ended::Worker(_) => {
                vec![]
            }
        };
        assert_eq!(api.lines(&fixture.id).await, lines);
        assert_eq!(api.event_types(&fixture.id).await, ONE_RUN);
    }
    let history = api.history().await;
    assert_eq!(history[..seen.len()], seen, "earlier events have changed");
    assert_eq!(api.server().await.live_tasks, 3);
    for fixture in &mut live {
        let stopped = api.stop(&fixture.id).await;
        fixture.assert_gone();
        assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    }
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_ends_after_three_crashes_has_its_true_outcome() {
    let mut daemon = Daemon::start().await;
    let gate = daemon.gate("gate");
    let script = format!("print one gate {} print two exit 5", daemon.file("gate"));
    let fixture = daemon.run(&daemon.api().await, &script).await;
    for _ in 0..3 {
        daemon.kill9();
        daemon.restart().await;
    }
    let api = daemon.api().await;
    assert_eq!(api.task(&fixture.id).await.state(), TaskState::Running);
    gate.open();
    let task = api.ended(&fixture.id).await;
    assert_eq!((task.state(), exit_code(&task)), (TaskState::Failed, 5));
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    assert_eq!(api.event_types(&fixture.id).await, ONE_RUN);
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_under_load_loses_no_answered_task_and_records_each_end_once() {
    let mut daemon = Daemon::start().await;
    let load = |api: Api, request: SpawnRequest| async move {
        let mut answered = Vec::new();
        while let Ok(answer) = api.spawn(request.clone()).await {
            answered.push(answer.task.unwrap().id);
        }
        answered
    };
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..4 {
        calls.spawn(load(daemon.api().await, daemon.script("print out exit 3")));
    }
    let api = daemon.api().await;
    let mut watch = api.watch_after(0).await;
    watch.until(|event| event.revision >= 60).await;
    daemon.kill9();
    let answered: Vec<String> = calls.join_all().await.into_iter().flatten().collect();
    daemon.restart().await;

    let api = daemon.api().await;
    let all = api.all().await;
    for id in &answered {
        assert!(
            all.iter().any(|task| task.id == *id),
            "{id} was answered and is lost"
        );
    }
    for task in &all {
        let task = api.ended(&task.id).await;
        if answered.contains(&task.id) {
            assert_eq!(exit_code(&task), 3, "{task:?}");
            assert_eq!(api.lines(&task.id).await, ["out"]);
        } else {
            assert_ne!(
                outcome(&task),
                &Ended::ExitCode(0),
                "an invented end: {task:?}"
            );
        }
    }
    let history = api.history().await;
    for task in &all {
        let of = history.iter().filter(|event| is_of(event, &task.id));
        let ends = of.filter(|event| event.r#type() == TaskEventType::Ended);
        assert_eq!(ends.count(), 1, "{task:?}");
    }
    daemon.no_processes().await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_answers_only_after_it_has_taken_every_task_back() {
    const TASKS: usize = 40;
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("gate {} exit 3", daemon.file("gate"));
    for _ in 0..TASKS {
        api.start(daemon.script(&script)).await;
    }
    daemon.kill9();
    gate.open();
    daemon.no_processes().await;
    let address = daemon.address();
    let first_answer = tokio::spawn(async move {
        let request = ListRequest {
            include_finished: true,
            page_size: 1000,
            ..Default::default()
        };
        loop {
            tokio::task::yield_now().await;
            let Ok(api) = Api::connect(&address).await else {
                continue;
            };
            match api.list(request.clone()).await {
                Ok(page) => return page,
                // A shim that was being started at the kill keeps the old socket until its exec.
                Err(broken) if broken.source().is_some() => {}
                Err(refused) => assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}"),
            }
        }
    });
    daemon.restart().await;
    let page = first_answer.await.unwrap();
    assert_eq!(page.tasks.len(), TASKS);
    for task in page.tasks {
        assert_eq!(exit_code(&task), 3);
    }
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_server_on_the_same_state_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let (state, socket) = (daemon.state_dir(), daemon.file("second.sock"));
    let listen = ["--listen", &format!("unix:{socket}")];
    let stderr = daemon.refused_start(&state, &listen).await;
    assert!(stderr.contains(state.to_str().unwrap()), "{stderr}");
    assert_eq!(
        api.task(&fixture.id).await.state(),
        TaskState::Running,
        "the task of the first server"
    );
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_server_on_the_same_address_is_refused() {
    let daemon = Daemon::start().await;
    let other = daemon.path("other-state");
    let stderr = daemon.refused_start(&other, &[]).await;
    assert!(stderr.contains(&daemon.address()), "{stderr}");
    daemon.api().await.server().await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sigterm_leaves_tasks_running_and_exits_0_with_clients_connected() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print here forever").await;
    // None of these may delay the exit.
    let watch = api.watch_after(0).await;
    let (wait, read) = (api.clone(), api.clone());
    let id = fixture.id.clone();
    let request = heeler_tests::request::wait([&id]);
    let wait = tokio::spawn(async move { wait.wait(request).await });
    let request = ReadOutputRequest {
        wait: Some(heeler_tests::secs(60)),
        ..heeler_tests::request::read(&id, 5)
    };
    let read = tokio::spawn(async move { read.read(request).await });
    api.list(ListRequest::default()).await.unwrap();
    daemon.terminate();
    assert!(wait.await.unwrap().is_err());
    let answer = read.await.unwrap();
    assert!(answer.is_err() || !answer.unwrap().complete);
    drop(watch);
    assert_taken_back(&mut daemon, &fixture).await;
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn silent_connections_do_not_delay_sigterm() {
    use std::{io::Write, os::unix::net::UnixStream};
    let mut daemon = Daemon::start().await;
    let _silent = UnixStream::connect(daemon.socket()).unwrap();
    let mut greeted = UnixStream::connect(daemon.socket()).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    greeted
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    greeted.write_all(&settings).unwrap();
    // Answered after them, so the server has accepted them by now.
    daemon.api().await.server().await;
    daemon.terminate();
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_server_logs_its_address_and_its_containment() {
    let daemon = Daemon::builder().containment("subreaper").start().await;
    daemon
        .logged(&format!("heeler: listening on {}", daemon.address()))
        .await;
    daemon.logged("containment: subreaper").await;
}
