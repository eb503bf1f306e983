//! Owners of sessions: what follows when the last one is gone.

use heeler_tests::{
    Api, Daemon, Fixture, SpawnRequestExt as _, Watch, argv, millis, request::queued, secs,
    sessions::idle, v1::*,
};

/// A window that no test outlasts.
fn long() -> prost_types::Duration {
    secs(3600)
}

/// A stream that owns the session; the client is an owner from its first message on.
async fn own(api: &Api, session: &str, window: prost_types::Duration) -> Watch {
    let request = WatchEventsRequest {
        types: vec![TaskEventType::SessionIdle.into()],
        own_session: Some(SessionOwnership {
            session_id: session.into(),
            reattach_window: Some(window),
        }),
        ..WatchEventsRequest::default()
    };
    let mut stream = api.watch(request).await.unwrap();
    stream.bookmark().await;
    stream
}

async fn owners(api: &Api, session: &str) -> Option<u32> {
    let request = ListSessionsRequest {
        session_id: session.into(),
        ..ListSessionsRequest::default()
    };
    let listed = api.list_sessions(request).await.unwrap().sessions;
    listed.into_iter().next().expect("a live task").owners
}

async fn until_owners_are(api: &Api, session: &str, expected: Option<u32>) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while owners(api, session).await != expected {
        assert!(std::time::Instant::now() < deadline, "not {expected:?}");
        tokio::task::yield_now().await;
    }
}

fn in_session(session: &str) -> SpawnRequest {
    SpawnRequest::default().with_session(session)
}

async fn sleeper(daemon: &Daemon, api: &Api, session: &str) -> Fixture {
    daemon.run_as(api, in_session(session), "forever").await
}

/// E10: an agent and a foreground task, a queued one, and what belongs to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_tasks_of_a_session_are_cancelled_when_its_last_owner_is_gone() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let first = own(&api, "s", long()).await;
    let second = own(&api, "s", millis(300)).await;
    let agent = in_session("s").with_kind(TaskKind::Agent);
    let mut agent = daemon
        .run_as(&api, agent, "fork [ setsid forever ] forever")
        .await;
    let kept = heeler_tests::foreground()
        .with_session("s")
        .with_on_disconnect(DisconnectAction::Keep);
    let mut kept = daemon.run_as(&api, kept, "forever").await;
    api.set_queue("q", None, Some(true)).await.unwrap();
    let child = argv(["sleep", "1000"]).with_parent(&agent.id);
    let child = api.start(child).await;
    let waiting = queued("q", argv(["true"])).with_session("s");
    let waiting = api.start(waiting).await;
    let other = sleeper(&daemon, &api, "t").await;
    let without = daemon.run(&api, "forever").await;
    assert_eq!(owners(&api, "s").await, Some(2));
    assert_eq!(owners(&api, "t").await, None);

    drop(first);
    until_owners_are(&api, "s", Some(1)).await;
    drop(second);
    for id in [&agent.id, &kept.id, &waiting.id] {
        let task = api.ended(id).await;
        assert_eq!(
            (task.state(), task.end_reason()),
            (TaskState::Cancelled, EndReason::ClientDisconnected)
        );
        let stop = task.stop.unwrap();
        assert_eq!(stop.reason, "the last owner of session \"s\" is gone");
        assert_eq!(stop.actor.unwrap().name, "heeler");
    }
    let child = api.ended(&child.id).await;
    assert_eq!(child.state(), TaskState::Cancelled, "with its parent");
    agent.assert_gone();
    kept.assert_gone();
    for id in [&other.id, &without.id] {
        assert_eq!(api.task(id).await.state(), TaskState::Running);
    }
    assert_eq!(idle(&api.history().await), ["s"]);
    let later = sleeper(&daemon, &api, "s").await;
    until_owners_are(&api, "s", None).await;
    assert_eq!(api.task(&later.id).await.state(), TaskState::Running);
}

/// E10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_owner_that_comes_back_in_time_keeps_the_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = sleeper(&daemon, &api, "s").await;
    drop(own(&api, "s", secs(3)).await);
    until_owners_are(&api, "s", Some(0)).await;
    let back = own(&api, "s", millis(100)).await;
    assert_eq!(owners(&api, "s").await, Some(1));
    let longer_than_the_window = api.start(argv(["sleep", "3.5"])).await;
    api.ended(&longer_than_the_window.id).await;
    assert_eq!(api.task(&task.id).await.state(), TaskState::Running);
    // The window of the newest owner counts.
    drop(back);
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Cancelled);
}

/// E10, R1: only the journal still knows of the owner.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_session_ends_though_its_owner_and_the_server_are_killed_together() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut command = daemon.cli(["events", "-f", "--after", "now", "--session", "s"]);
    command.args(["--end-session", "--reattach-window", "300ms"]);
    command.kill_on_drop(true);
    let task = sleeper(&daemon, &api, "s").await;
    let mut owner = command.spawn().unwrap();
    until_owners_are(&api, "s", Some(1)).await;
    daemon.kill9();
    owner.kill().await.unwrap();
    daemon.restart().await;
    let ended = daemon.api().await.ended(&task.id).await;
    assert_eq!(ended.end_reason(), EndReason::ClientDisconnected);
    daemon.no_processes().await;
}

/// E10, R1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_owner_that_finds_the_next_server_keeps_the_tasks() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = sleeper(&daemon, &api, "s").await;
    let _lost = own(&api, "s", long()).await;
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(owners(&api, "s").await, Some(0));
    let _back = own(&api, "s", long()).await;
    assert_eq!(owners(&api, "s").await, Some(1));
    assert_eq!(api.task(&task.id).await.state(), TaskState::Running);
}

/// E10: the end of a stream by a shutdown is no departure, even with a window that would be over at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_shutdown_of_the_server_ends_no_session() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = sleeper(&daemon, &api, "s").await;
    let _owner = own(&api, "s", millis(1)).await;
    daemon.terminate();
    assert!(task.process("leader").await.is_alive());
    daemon.restart().await;
    let api = daemon.api().await;
    assert_eq!(api.ended(&task.id).await.state(), TaskState::Cancelled);
}

/// A session that has ended and waits for a task that ignores its stop.
async fn ending(daemon: &Daemon, api: &Api) -> Fixture {
    let owner = own(api, "s", millis(100)).await;
    let stubborn = in_session("s").with_grace(secs(600));
    let script = "ignore TERM pid ready forever";
    let stubborn = daemon.run_as(api, stubborn, script).await;
    stubborn.process("ready").await;
    drop(owner);
    let mut events = api.watch_after(0).await;
    events.until_of(&stubborn.id, TaskEventType::Stopping).await;
    stubborn
}

/// E10: an owner that comes back too late owns what it starts, not what is being stopped.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_late_owner_keeps_the_tasks_that_it_starts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let stubborn = ending(&daemon, &api).await;
    let _late = own(&api, "s", long()).await;
    let new = sleeper(&daemon, &api, "s").await;
    api.kill(&stubborn.id).await;
    let a_while = api.start(argv(["sleep", "0.5"])).await;
    api.ended(&a_while.id).await;
    assert_eq!(api.task(&new.id).await.state(), TaskState::Running);
    assert_eq!(owners(&api, "s").await, Some(1));
}

/// E10
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_task_that_is_started_while_its_session_ends_is_cancelled_too() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let stubborn = ending(&daemon, &api).await;
    let straggler = sleeper(&daemon, &api, "s").await;
    api.kill(&stubborn.id).await;
    let straggler = api.ended(&straggler.id).await;
    assert_eq!(straggler.end_reason(), EndReason::ClientDisconnected);
}
