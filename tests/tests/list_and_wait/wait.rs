//! Wait: for tasks, for sessions, and its timeout.

use std::time::{Duration, Instant};

use heeler_tests::{
    Daemon, SpawnRequestExt as _, argv, millis, request::wait_for_session, secs, v1::*, within,
};
use tonic::Code;

/// A wait for tasks with a timeout that fails the test.
fn on<T: Into<String>>(ids: impl IntoIterator<Item = T>) -> WaitRequest {
    WaitRequest {
        timeout: Some(secs(30)),
        ..heeler_tests::request::wait(ids)
    }
}

fn ids(tasks: &[BackgroundTask]) -> Vec<&str> {
    tasks.iter().map(|task| task.id.as_str()).collect()
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_for_any_two_or_all_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gates = ["gate-0", "gate-1", "gate-2"].map(|name| (daemon.gate(name), daemon.file(name)));
    let mut tasks = Vec::new();
    for (_, path) in &gates {
        tasks.push(daemon.run(&api, &format!("gate {path} exit 7")).await.id);
    }
    let [first, second, third] = gates.map(|(gate, _)| gate);
    let call = |count: Option<u32>| {
        let (api, request) = (
            api.clone(),
            WaitRequest {
                count,
                ..on(&tasks)
            },
        );
        tokio::spawn(async move { api.wait(request).await.unwrap() })
    };
    let (any, two, all) = (call(Some(1)), call(Some(2)), call(None));

    second.open();
    let any = within("one of them", any).await.unwrap();
    assert!(any.satisfied);
    assert_eq!((ids(&any.met), any.pending.len()), (vec![&*tasks[1]], 2));
    assert_eq!(any.met[0].state(), TaskState::Failed);

    third.open();
    let two = within("two of them", two).await.unwrap();
    assert!(two.satisfied);
    assert_eq!(
        ids(&two.met),
        [&*tasks[1], &*tasks[2]],
        "in the order of the request"
    );

    first.open();
    let all = within("all of them", all).await.unwrap();
    assert!(all.satisfied);
    assert_eq!((ids(&all.met).len(), all.pending.len()), (3, 0));
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_condition_that_already_holds_returns_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["true"])).await;
    let ended = api.ended(&task.id).await;
    for timeout in [None, Some(secs(0)), Some(secs(3600))] {
        let answer = api
            .wait(WaitRequest {
                timeout,
                ..on([&task.id])
            })
            .await
            .unwrap();
        assert!(answer.satisfied);
        assert_eq!(answer.met, std::slice::from_ref(&ended));
    }
    let request = WaitRequest {
        timeout: Some(secs(3600)),
        ..wait_for_session("no such session")
    };
    assert!(
        api.wait(request).await.unwrap().satisfied,
        "a session without live tasks"
    );
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timeout_names_the_tasks_that_still_run() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let running = daemon.run(&api, "forever").await;
    let over = api.start(argv(["true"])).await;
    api.ended(&over.id).await;
    let began = Instant::now();
    let request = WaitRequest {
        timeout: Some(millis(200)),
        ..on([&running.id, &over.id])
    };
    let answer = api.wait(request).await.unwrap();
    assert!(
        began.elapsed() >= Duration::from_millis(200),
        "returned before its timeout"
    );
    assert!(!answer.satisfied);
    assert_eq!(
        (ids(&answer.met), ids(&answer.pending)),
        (vec![&*over.id], vec![&*running.id])
    );
    assert_eq!(answer.pending[0].state(), TaskState::Running);

    let answer = api
        .wait(WaitRequest {
            timeout: Some(secs(0)),
            ..on([&running.id])
        })
        .await
        .unwrap();
    assert!(!answer.satisfied, "satisfied although the task runs");
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_a_session_includes_tasks_that_start_during_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let (gate_one, gate_two) = (daemon.gate("one"), daemon.gate("two"));
    let request = || SpawnRequest::default().with_session("s");
    let one = daemon
        .run_as(&api, request(), &format!("gate {}", daemon.file("one")))
        .await
        .id;
    let outside = daemon.run(&api, "forever").await;
    let wait = {
        let api = api.clone();
        let request = WaitRequest {
            timeout: Some(secs(60)),
            ..wait_for_session("s")
        };
        tokio::spawn(async move { api.wait(request).await.unwrap() })
    };
    let two = daemon
        .run_as(&api, request(), &format!("gate {}", daemon.file("two")))
        .await
        .id;
    gate_one.open();
    api.ended(&one).await;
    assert!(!wait.is_finished(), "satisfied although one task runs");
    gate_two.open();
    let last = api.ended(&two).await;
    let answer = within("an idle session", wait).await.unwrap();
    assert!(answer.satisfied && answer.revision >= last.revision);
    assert_eq!(
        (ids(&answer.met), answer.pending.len()),
        (vec![&*two, &*one], 0),
        "newest first"
    );
    assert_eq!(api.task(&outside.id).await.state(), TaskState::Running);
}

/// L4, L7: the events of the ends are pruned during the wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_wait_for_a_session_includes_ends_whose_events_were_pruned() {
    let daemon = Daemon::builder().arg("--keep-events=1").start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let request = || SpawnRequest::default().with_session("s");
    let script = format!("gate {}", daemon.file("gate"));
    let last = daemon.run_as(&api, request(), &script).await.id;
    let waiting = || WaitRequest {
        timeout: Some(millis(100)),
        ..wait_for_session("s")
    };
    let (caller, mut long) = (daemon.api().await, waiting());
    long.timeout = Some(secs(60));
    let wait = tokio::spawn(async move { caller.wait(long).await.unwrap() });
    // Once a later call on another connection is answered, the first has arrived.
    api.wait(waiting()).await.unwrap();
    let mut expected = Vec::new();
    for _ in 0..3 {
        let task = daemon.run_as(&api, request(), "exit 0").await.id;
        expected.insert(0, api.ended(&task).await);
    }
    let _later = daemon.run(&api, "forever").await;
    api.oldest_kept(expected[0].revision + 1).await;
    gate.open();
    expected.insert(0, api.ended(&last).await);
    let answer = within("an idle session", wait).await.unwrap();
    assert_eq!(ids(&answer.met), ids(&expected));
}

/// L5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_end_of_a_wait_ends_no_task() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let fixture = daemon.run(&api, "forever").await;
    let mut request = tonic::Request::new(on([&fixture.id]));
    request.set_timeout(Duration::from_millis(100));
    let status = api.raw().wait(request).await.unwrap_err();
    assert!(
        [Code::DeadlineExceeded, Code::Cancelled].contains(&status.code()),
        "{status:?}"
    );

    let caller = daemon.api().await;
    let request = on([&fixture.id]);
    let call = tokio::spawn(async move { caller.wait(request).await });
    // Once a later call on another connection is answered, the first has arrived.
    api.wait(WaitRequest {
        timeout: Some(millis(100)),
        ..on([&fixture.id])
    })
    .await
    .unwrap();
    call.abort();
    assert!(call.await.unwrap_err().is_cancelled());

    let task = api.task(&fixture.id).await;
    assert_eq!((task.state(), &task.stop), (TaskState::Running, &None));
    assert!(fixture.process("leader").await.is_alive());
}
