//! Session activity: the counts of live tasks, and SESSION_IDLE.

use heeler_tests::{
    Api, Daemon, Follower, Refusal, SpawnRequestExt as _, Watch, argv, eventually, millis,
    request::{cancel_session, force, session, wait_for_session},
    secs,
    sessions::{activity_of, faults, idle},
    v1::{watch_events_response::Item, *},
    watch::types,
};
use tonic::Code;

fn of(session: &str, kind: TaskKind) -> SpawnRequest {
    SpawnRequest::default()
        .with_session(session)
        .with_kind(kind)
}

fn counts(session: &str, agents: u32, shells: u32) -> SessionActivity {
    SessionActivity {
        session_id: session.into(),
        agents,
        shells,
        ..SessionActivity::default()
    }
}

/// The counts in a history, in order, SESSION_IDLE included.
fn activities(history: &[TaskEvent]) -> Vec<SessionActivity> {
    let activities = history.iter().map(|event| event.session_activity.as_ref());
    activities.flatten().map(without_ids).collect()
}

fn without_ids(activity: &SessionActivity) -> SessionActivity {
    counts(&activity.session_id, activity.agents, activity.shells)
}

/// The events of a stream up to a bookmark at this revision.
async fn everything_up_to(revision: u64, mut watch: Watch) -> Vec<TaskEvent> {
    let mut events = Vec::new();
    loop {
        match watch.next().await {
            Item::Event(event) => events.push(event),
            Item::Bookmark(bookmark) if bookmark.revision >= revision => return events,
            Item::Bookmark(_) => {}
            Item::Initial(task) => panic!("not asked for: {task:?}"),
        }
    }
}

async fn finish(api: &Api, request: SpawnRequest) {
    let task = api.start(request.with_command_of(argv(["true"]))).await;
    api.ended(&task.id).await;
}

/// E9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_start_and_end_carries_the_counts_and_the_last_end_is_followed_by_idle() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut watch = api.watch_after(0).await;
    let shell = daemon
        .run_as(&api, of("s", TaskKind::Shell), "forever")
        .await;
    let agent = daemon
        .run_as(&api, of("s", TaskKind::Agent), "forever")
        .await;
    let other = daemon
        .run_as(&api, of("t", TaskKind::Shell), "forever")
        .await;
    let without_session = daemon.run(&api, "forever").await;
    for fixture in [&agent, &shell, &without_session] {
        api.kill(&fixture.id).await;
    }
    finish(&api, of("s", TaskKind::Agent)).await;

    let newest = api.revision().await;
    let history = watch.up_to(newest).await;
    assert_eq!(faults(&history), [""; 0]);
    let expected = [
        counts("s", 0, 1),
        counts("s", 1, 1),
        counts("t", 0, 1),
        counts("s", 0, 1),
        counts("s", 0, 0),
        counts("s", 0, 0),
        counts("s", 1, 0),
        counts("s", 0, 0),
        counts("s", 0, 0),
    ];
    assert_eq!(activities(&history), expected);
    assert_eq!(idle(&history), ["s", "s"], "t has a live task");
    let idle = |event: &TaskEvent| event.r#type() == TaskEventType::SessionIdle;
    let first = history.iter().position(idle).unwrap();
    assert_eq!(
        (&history[first].task, &history[first].output_tail),
        (&None, &None)
    );
    let last_end = &history[first - 1];
    assert_eq!(last_end.r#type(), TaskEventType::Ended);
    assert_eq!(history[first].event_time, last_end.event_time);
    api.remove([shell.id]).await.unwrap();
    assert_eq!(
        watch.event().await.session_activity,
        None,
        "a removal has no activity"
    );
    assert_eq!(api.task(&other.id).await.state(), TaskState::Running);
}

/// E9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_failed_start_counts_until_its_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = argv([daemon.broken_program()]).with_session("s");
    api.spawn(request).await.unwrap_err();
    let history = api.history().await;
    assert_eq!(
        types(&history),
        [
            TaskEventType::Created,
            TaskEventType::Ended,
            TaskEventType::SessionIdle
        ]
    );
    assert_eq!(faults(&history), [""; 0]);
}

/// E9, R1: the last tasks of a session end without a server.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_next_server_counts_ends_without_a_server_and_reports_idle_once() {
    let mut daemon = Daemon::start().await;
    let follower = Follower::of(daemon.address());
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!("gate {} exit 3", daemon.file("gate"));
    let mut ending = Vec::new();
    for kind in [TaskKind::Shell, TaskKind::Agent, TaskKind::Shell] {
        ending.push(daemon.run_as(&api, of("s", kind), &script).await);
    }
    let living = daemon
        .run_as(&api, of("t", TaskKind::Agent), "forever")
        .await;
    daemon.kill9();
    gate.open();
    for fixture in &mut ending {
        eventually("the end of the tree", || fixture.leash_is_free()).await;
    }
    daemon.restart().await;

    let api = daemon.api().await;
    for fixture in &ending {
        api.ended(&fixture.id).await;
    }
    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let history = follower.assert_whole(&api).await;
    assert_eq!(faults(&history), [""; 0]);
    assert_eq!(idle(&history), ["s"]);
    api.kill(&living.id).await;
    let history = follower.assert_whole(&api).await;
    assert_eq!(faults(&history), [""; 0]);
    assert_eq!(
        idle(&history),
        ["s", "t"],
        "tasks from before the crash still count"
    );
}

/// E9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_cancelled_session_becomes_idle_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for number in 0..12 {
        let kind = [TaskKind::Shell, TaskKind::Agent][number % 2];
        daemon.run_as(&api, of("s", kind), "forever").await;
    }
    let request = CancelRequest {
        how: force(),
        wait: true,
        ..cancel_session("s")
    };
    assert_eq!(api.cancel(request).await.unwrap().results.len(), 12);
    let history = api.history().await;
    assert_eq!(faults(&history), [""; 0]);
    assert_eq!(idle(&history), ["s"]);
    assert_eq!(history.last().unwrap().r#type(), TaskEventType::SessionIdle);
}

/// E9, E2: many clients at once, so that ends share a commit with starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_counts_follow_the_order_of_events_under_concurrent_spawns() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut hosts = tokio::task::JoinSet::new();
    for host in 0..8 {
        let api = api.clone();
        let session = ["a", "b", ""][host % 3];
        hosts.spawn(async move {
            for _ in 0..10 {
                finish(&api, of(session, TaskKind::Shell)).await;
            }
        });
    }
    hosts.join_all().await;
    let history = api.history().await;
    assert_eq!(faults(&history), [""; 0]);
    let idle = idle(&history);
    assert!(idle.contains(&"a") && idle.contains(&"b") && !idle.contains(&""));
}

/// E9: a filter by session passes SESSION_IDLE, a filter by a property of tasks does not.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn idle_is_sent_to_watchers_of_the_session_or_of_everything_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for session in ["s", "t", "s"] {
        finish(&api, of(session, TaskKind::Shell)).await;
    }
    let history = api.history().await;
    let newest = history.last().unwrap().revision;
    let seen = async |filter, types: &[TaskEventType]| {
        let request = WatchEventsRequest {
            after_revision: Some(0),
            filter,
            types: types.iter().map(|kind| i32::from(*kind)).collect(),
            bookmark_interval: Some(millis(100)),
            ..Default::default()
        };
        everything_up_to(newest, api.watch(request).await.unwrap()).await
    };
    let idle_type = [TaskEventType::SessionIdle];
    assert_eq!(idle(&seen(None, &[]).await), ["s", "t", "s"]);
    assert_eq!(idle(&seen(None, &idle_type).await), ["s", "t", "s"]);
    assert_eq!(idle(&seen(Some(session("s")), &[]).await), ["s", "s"]);
    let alone = seen(Some(session("t")), &idle_type).await;
    assert_eq!(alone.len(), 1);
    assert_eq!(activity_of(&alone[0]), &counts("t", 0, 0));
    let of_tasks = TaskFilter {
        kinds: vec![TaskKind::Shell.into()],
        ..session("s")
    };
    let ends = seen(Some(of_tasks.clone()), &[TaskEventType::Ended]).await;
    assert_eq!(ends.len(), 2);
    assert!(
        ends.iter()
            .all(|end| *activity_of(end) == counts("s", 0, 0))
    );
    assert_eq!(idle(&seen(Some(of_tasks.clone()), &[]).await), [""; 0]);

    let request = WatchEventsRequest {
        filter: Some(of_tasks),
        types: vec![
            TaskEventType::Ended.into(),
            TaskEventType::SessionIdle.into(),
        ],
        ..Default::default()
    };
    let refused = api.watch(request).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(Refusal::of(&refused).fields, ["types[1]"]);
}

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_timed_out_wait_for_a_session_names_its_running_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let one = daemon
        .run_as(&api, of("s", TaskKind::Shell), "forever")
        .await;
    let two = daemon
        .run_as(&api, of("s", TaskKind::Agent), "forever")
        .await;
    daemon
        .run_as(&api, of("t", TaskKind::Shell), "forever")
        .await;
    let wait = |timeout| WaitRequest {
        timeout: Some(timeout),
        ..wait_for_session("s")
    };
    for timeout in [secs(0), millis(100)] {
        let answer = api.wait(wait(timeout)).await.unwrap();
        assert!(!answer.satisfied && answer.met.is_empty());
        let mut pending: Vec<&str> = answer.pending.iter().map(|task| &*task.id).collect();
        pending.sort_unstable();
        let mut expected = [&*one.id, &*two.id];
        expected.sort_unstable();
        assert_eq!(pending, expected);
    }
    for fixture in [&one, &two] {
        api.kill(&fixture.id).await;
    }
    let answer = api.wait(wait(secs(3600))).await.unwrap();
    assert!(answer.satisfied && answer.pending.is_empty());
    assert_eq!(idle(&api.history().await), ["s"]);
}

/// L8, E9: sessions with what they have running can be listed, and one that waits for stale tasks only says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn sessions_list_their_live_tasks_and_tell_that_all_of_them_are_stale() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let list = |session_id: &str, page_token: String| ListSessionsRequest {
        session_id: session_id.to_owned(),
        page_size: 1,
        page_token,
    };
    let none = api.list_sessions(ListSessionsRequest::default()).await;
    assert_eq!(none.unwrap().sessions, []);
    let sleeping = |request: SpawnRequest| request.with_command_of(argv(["sleep", "3600"]));
    let silent = sleeping(of("s", TaskKind::Agent)).with_stale_after(millis(50));
    let silent = api.start(silent).await;
    let shell = api.start(sleeping(of("t", TaskKind::Shell))).await;
    let without_session = api.start(argv(["sleep", "3600"])).await;
    let mut watch = api.watch_after(0).await;
    let stale = watch.until_of(&silent.id, TaskEventType::Stale).await;
    let stale = activity_of(stale.last().unwrap());
    assert_eq!((stale.agents, stale.stale), (1, 1), "the event says so");

    let first = api.list_sessions(list("", String::new())).await.unwrap();
    let [session] = &first.sessions[..] else {
        panic!("one page of one session: {first:?}");
    };
    let activity = session.activity.as_ref().unwrap();
    assert_eq!((&*activity.session_id, activity.agents), ("s", 1));
    assert_eq!(activity.agent_ids, [&*silent.id]);
    assert_eq!((activity.stale, session.only_stale), (1, true));
    assert_eq!(session.since_time, silent.create_time);
    assert!(time_of(session.activity_time) >= time_of(silent.start_time));
    let token = first.next_page_token;
    let second = api.list_sessions(list("", token)).await.unwrap();
    let [session] = &second.sessions[..] else {
        panic!("the other session: {second:?}");
    };
    let activity = session.activity.as_ref().unwrap();
    assert_eq!(activity.shell_ids, [&*shell.id]);
    assert_eq!((activity.stale, session.only_stale), (0, false));
    assert_eq!(second.next_page_token, "");
    let alone = api.list_sessions(list("t", String::new())).await.unwrap();
    assert_eq!(alone.sessions, second.sessions);

    daemon.kill9();
    daemon.restart().await;
    let api = daemon.api().await;
    let again = api.list_sessions(list("s", String::new())).await.unwrap();
    assert_eq!(again.sessions[0].activity, first.sessions[0].activity);
    assert_eq!(faults(&api.history().await), [""; 0]);
    for id in [&silent.id, &shell.id, &without_session.id] {
        api.kill(id).await;
    }
    let none = api.list_sessions(ListSessionsRequest::default()).await;
    assert_eq!(none.unwrap().sessions, []);
}

fn time_of(time: Option<prost_types::Timestamp>) -> (i64, i32) {
    let time = time.expect("a time");
    (time.seconds, time.nanos)
}

/// L8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_bad_page_of_sessions_is_refused() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let negative = ListSessionsRequest {
        page_size: -1,
        ..ListSessionsRequest::default()
    };
    let forged = ListSessionsRequest {
        page_token: "zz".into(),
        ..ListSessionsRequest::default()
    };
    let long = ListSessionsRequest {
        session_id: "x".repeat(257),
        ..ListSessionsRequest::default()
    };
    for (request, field) in [
        (negative, "page_size"),
        (forged, "page_token"),
        (long, "session_id"),
    ] {
        let refusal = Refusal::of(&api.list_sessions(request).await.unwrap_err());
        assert_eq!(refusal.code, Code::InvalidArgument);
        assert_eq!(refusal.fields, [field]);
    }
}
