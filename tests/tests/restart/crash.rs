//! Nothing is lost: the server dies, and another takes its place.

use std::{collections::HashMap, process::Stdio};

use heeler_tests::{
    Api, Daemon, eventually,
    v1::{outcome::Result as Ended, *},
    watch::{task_of, types},
};

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn after_a_crash_live_tasks_go_on_and_ends_in_between_have_their_true_codes() {
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
        eventually("an end that no server sees", || !leader.is_alive()).await;
    }
    daemon.restart().await;

    let api = daemon.api().await;
    for fixture in &live {
        let task = api.task(&fixture.id).await;
        assert_eq!(task, before[&fixture.id], "the same in every respect");
        assert!(
            fixture
                .processes(&["leader", "child"])
                .await
                .iter()
                .all(|one| one.is_alive())
        );
        assert!(api.lines(&fixture.id).await[0].starts_with("live-"));
    }
    for (fixture, outcome) in &ending {
        let task = api.ended(&fixture.id).await;
        assert_eq!(task.outcome.unwrap().result.as_ref(), Some(outcome));
        let expected = match outcome {
            Ended::ExitCode(_) => vec!["before", "after"],
            Ended::Signal(_) | Ended::SpawnError(_) | Ended::Unknown(_) => vec![],
        };
        assert_eq!(api.lines(&fixture.id).await, expected);
        let kinds = types(&api.history_of(&fixture.id).await);
        assert_eq!(
            kinds,
            [
                TaskEventType::Created,
                TaskEventType::Started,
                TaskEventType::Ended
            ]
        );
    }
    let history = api.history().await;
    assert_eq!(history[..seen.len()], seen, "the past is what it was");
    assert_eq!(api.server().await.live_tasks, 3);
    for fixture in &mut live {
        let stopped = api.stop(&fixture.id, CancelMode::Graceful).await;
        fixture.assert_gone();
        assert_eq!(stopped.task.unwrap().state(), TaskState::Cancelled);
    }
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_ends_after_the_restart_ends_as_ever() {
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
    assert_eq!(
        (task.state(), task.outcome.unwrap().result),
        (TaskState::Failed, Some(Ended::ExitCode(5)))
    );
    assert_eq!(api.lines(&fixture.id).await, ["one", "two"]);
    let kinds = types(&api.history_of(&fixture.id).await);
    assert_eq!(
        kinds,
        [
            TaskEventType::Created,
            TaskEventType::Started,
            TaskEventType::Ended
        ]
    );
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_crash_under_load_loses_no_task_that_was_answered_and_tells_each_end_once() {
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
            "{id} was answered, and is gone"
        );
    }
    for task in &all {
        let task = api.ended(&task.id).await;
        let result = task.outcome.as_ref().unwrap().result.as_ref();
        if answered.contains(&task.id) {
            assert_eq!(result, Some(&Ended::ExitCode(3)), "{task:?}");
            assert_eq!(api.lines(&task.id).await, ["out"]);
        } else {
            assert_ne!(
                result,
                Some(&Ended::ExitCode(0)),
                "an end that was made up: {task:?}"
            );
        }
    }
    let history = api.history().await;
    for task in &all {
        let of = history.iter().filter(|event| task_of(event).id == task.id);
        let ends = of
            .filter(|event| event.r#type() == TaskEventType::Ended)
            .count();
        assert_eq!(ends, 1, "{task:?}");
    }
    daemon.no_processes().await;
}

/// R1
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_served_before_every_task_has_been_taken_back() {
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
                Err(status) => assert_eq!(status.code(), tonic::Code::Unavailable),
            }
        }
    });
    daemon.restart().await;
    let page = first_answer.await.unwrap();
    assert_eq!(page.tasks.len(), TASKS);
    for task in page.tasks {
        assert_eq!(task.outcome.unwrap().result, Some(Ended::ExitCode(3)));
    }
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_server_on_the_same_state_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let mut second = daemon.command();
    second
        .arg("serve")
        .arg("--state-dir")
        .arg(daemon.state_dir());
    second
        .arg("--listen")
        .arg(format!("unix:{}", daemon.file("second.sock")));
    let second = tokio::process::Command::from(second)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = heeler_tests::within("the second server ends", second)
        .await
        .unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains(daemon.state_dir().to_str().unwrap()),
        "names the directory: {told}"
    );
    assert!(!told.contains("panicked"), "{told}");
    assert_eq!(
        api.task(&fixture.id).await.state(),
        TaskState::Running,
        "the first goes on"
    );
}

/// R6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_second_server_on_the_same_address_is_refused_and_does_not_take_it() {
    let daemon = Daemon::start().await;
    let mut second = daemon.command();
    second
        .arg("serve")
        .arg("--state-dir")
        .arg(daemon.path("other-state"));
    let second = tokio::process::Command::from(second)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = heeler_tests::within("the second server ends", second)
        .await
        .unwrap();
    assert!(!output.status.success());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains(&daemon.address()),
        "names the address: {told}"
    );
    daemon
        .api()
        .await
        .list(ListRequest::default())
        .await
        .unwrap();
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sigterm_leaves_tasks_running_and_exits_0_whoever_is_connected() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "print here forever").await;
    // None of these may hold the server back.
    let watch = api.watch_after(0).await;
    let (wait, read) = (api.clone(), api.clone());
    let id = fixture.id.clone();
    let request = WaitRequest {
        task_ids: vec![id.clone()],
        ..Default::default()
    };
    let wait = tokio::spawn(async move { wait.wait(request).await });
    let request = ReadOutputRequest {
        wait: Some(heeler_tests::secs(60)),
        ..heeler_tests::api::read(&id, 5)
    };
    let read = tokio::spawn(async move { read.read(request).await });
    api.list(ListRequest::default()).await.unwrap();
    daemon.terminate();
    assert!(wait.await.unwrap().is_err());
    let answer = read.await.unwrap();
    assert!(answer.is_err() || !answer.unwrap().complete);
    drop(watch);
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
async fn sigterm_is_not_held_up_by_clients_that_never_say_a_word() {
    use std::{io::Write, os::unix::net::UnixStream};
    let mut daemon = Daemon::start().await;
    let _silent = UnixStream::connect(daemon.socket()).unwrap();
    let mut greeted = UnixStream::connect(daemon.socket()).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    greeted
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    greeted.write_all(&settings).unwrap();
    // Answered after them, so that they are connections of this server by now.
    daemon
        .api()
        .await
        .list(ListRequest::default())
        .await
        .unwrap();
    daemon.terminate();
}

/// R7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_server_says_where_it_listens_and_which_rung_it_has() {
    let daemon = Daemon::builder().containment("subreaper").start().await;
    daemon
        .logged(&format!("heeler: listening on {}", daemon.address()))
        .await;
    daemon.logged("heeler: kill ladder: subreaper").await;
}
