//! The event stream: content, order, start and bookmarks.

use std::collections::{BTreeMap, HashSet};

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, TaskSpecExt as _, argv, eventually,
    history::after,
    micros, millis,
    output::bytes,
    pattern, process,
    request::{force, session},
    v1::*,
    watch::{ONE_RUN, count, task_of, types},
};
use tonic::Code;

/// E1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_kind_of_end_has_one_started_and_one_ended_event_last() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let timed = daemon.script("forever").with_timeout(millis(50));
    let requests = [
        daemon.script("exit 0"),
        daemon.script("exit 3"),
        daemon.script("die KILL"),
        daemon.script("die SEGV"),
        timed,
        daemon.script("fork [ sleep 50 ] exit 0"),
        daemon.script("bytes 100000 exit 1"),
    ];
    let mut ids = Vec::new();
    for request in requests {
        ids.push(api.start(request).await.id);
    }
    for (script, how) in [("forever", None), ("ignore TERM forever", force())] {
        let task = api.start(daemon.script(script)).await;
        api.stop_by(&task.id, how).await;
        ids.push(task.id);
    }
    for id in &ids {
        api.ended(id).await;
        let history = api.event_types(id).await;
        let number = |wanted| history.iter().filter(|kind| **kind == wanted).count();
        assert_eq!(
            history[..2],
            [TaskEventType::Created, TaskEventType::Started],
            "{history:?}"
        );
        assert_eq!(history.last(), Some(&TaskEventType::Ended), "{history:?}");
        assert_eq!(
            (number(TaskEventType::Started), number(TaskEventType::Ended)),
            (1, 1)
        );
    }

    let broken = argv([daemon.broken_program()]);
    let refusal = Refusal::of(&api.spawn(broken).await.unwrap_err());
    let history = api.event_types(refusal.value("task_id")).await;
    assert_eq!(history, [TaskEventType::Created, TaskEventType::Ended]);
}

/// E1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_terminal_state_never_changes() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let cases = [
        ("exit 0", TaskState::Completed, EndReason::Exited),
        ("exit 255", TaskState::Failed, EndReason::Exited),
        ("die SEGV", TaskState::Failed, EndReason::Signalled),
    ];
    for (script, state, reason) in cases {
        let id = api.start(daemon.script(script)).await.id;
        let task = api.ended(&id).await;
        assert_eq!(
            (task.state(), task.end_reason()),
            (state, reason),
            "{script}"
        );
        assert!(micros(&task.create_time) <= micros(&task.start_time));
        assert!(micros(&task.start_time) <= micros(&task.end_time));
        api.kill(&id).await;
        assert_eq!(api.task(&id).await, task, "{script}");
    }
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_watcher_from_any_revision_gets_every_later_event_once_in_order() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..5 {
        let task = api.start(argv(["true"])).await;
        api.ended(&task.id).await;
    }
    let history = api.history().await;
    assert_eq!(history.len(), 15);
    for from in 0..history.len() {
        let seen = api.watch_after(from as u64).await.up_to(15).await;
        assert_eq!(seen, history[from..], "after {from}");
    }
    // Behind the newest revision only live events follow.
    let mut live = api.watch_after(15).await;
    assert_eq!(live.bookmark().await.revision, 15);
    api.start(argv(["true"])).await;
    assert_eq!(live.event().await.revision, 16);
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_watcher_that_resumes_after_a_crash_misses_nothing() {
    let mut daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let fixture = daemon
        .run(&api, &format!("gate {} exit 6", daemon.file("gate")))
        .await;
    let mut watch = api.watch_after(0).await;
    let mut seen = watch.until_of(&fixture.id, TaskEventType::Started).await;
    daemon.kill9();
    gate.open();
    let leader = fixture.process("leader").await;
    eventually("an end without a server", || !leader.is_alive()).await;
    daemon.restart().await;

    let api = daemon.api().await;
    let last = seen.last().unwrap().revision;
    seen.extend(
        api.watch_after(last)
            .await
            .until_of(&fixture.id, TaskEventType::Ended)
            .await,
    );
    assert_eq!(seen, api.history().await, "each event once");
    assert_eq!(types(&seen).last(), Some(&TaskEventType::Ended));
}

/// E3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn initial_state_bookmark_and_live_events_have_no_gap() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let long = daemon.run(&api, "forever").await;
    let over = api.start(argv(["true"])).await;
    api.ended(&over.id).await;
    let churn = {
        let api = api.clone();
        tokio::spawn(async move {
            for _ in 0..60 {
                api.start(argv(["true"])).await;
            }
        })
    };
    let mut streams = Vec::new();
    while !churn.is_finished() && streams.len() < 20 {
        let request = WatchEventsRequest {
            initial_state: true,
            ..Default::default()
        };
        // Each on a connection of its own: an unread stream blocks the others on its connection.
        let mut watch = daemon.api().await.watch(request).await.unwrap();
        let (initial, bookmark) = watch.initial().await;
        streams.push((initial, bookmark, watch));
    }
    churn.await.unwrap();
    for task in api.all().await.iter().filter(|task| task.id != long.id) {
        api.ended(&task.id).await;
    }
    let history = api.history().await;
    let newest = history.last().unwrap().revision;
    for (initial, bookmark, mut watch) in streams {
        assert!(initial.iter().any(|task| task.id == long.id));
        assert!(
            initial.iter().all(|task| task.id != over.id),
            "only live tasks"
        );
        let mut truth = BTreeMap::new();
        for event in &history[..bookmark.revision as usize] {
            truth.insert(task_of(event).id.clone(), task_of(event).clone());
        }
        truth.retain(|_, task| task.end_time.is_none());
        let initial: BTreeMap<_, _> = initial
            .into_iter()
            .map(|task| (task.id.clone(), task))
            .collect();
        assert_eq!(initial, truth, "the state at {}", bookmark.revision);
        if bookmark.revision < newest {
            let rest = watch.up_to(newest).await;
            assert_eq!(rest, history[bookmark.revision as usize..]);
        }
    }
}

/// E3, E7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_initial_state_larger_than_the_send_buffer_arrives_complete() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // Each task is larger than a cached encoding, and all are larger than the send buffer.
    let mut started = Vec::new();
    for _ in 0..12 {
        let request = argv(["sleep", "600"]).with_name("n".repeat(16 << 10));
        started.push(api.start(request).await);
    }
    let request = WatchEventsRequest {
        initial_state: true,
        ..Default::default()
    };
    let mut watch = daemon.api().await.watch(request).await.unwrap();
    let (initial, bookmark) = watch.initial().await;
    started.reverse();
    assert_eq!(initial, started, "newest first, each as it was started");
    api.stop_everything().await.unwrap();
    let history = api.history().await;
    let rest = watch.up_to(history.last().unwrap().revision).await;
    assert_eq!(rest, history[bookmark.revision as usize..]);
}

/// E4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_revision_out_of_range_is_refused_with_oldest_and_newest() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(argv(["true"])).await;
    let newest = api.ended(&task.id).await.revision;
    for revision in [newest + 1, u64::MAX] {
        let refused = api.watch(after(revision)).await;
        let refusal = Refusal::expect(refused, Code::OutOfRange, "REVISION_OUT_OF_RANGE");
        assert_eq!(refusal.value("newest"), newest.to_string());
        assert!(refusal.value("oldest").parse::<u64>().unwrap() <= newest);
    }
}

/// E4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn another_epoch_is_refused() {
    let (daemon, other) = (Daemon::start().await, Daemon::start().await);
    let (api, own) = (daemon.api().await, daemon.api().await.server().await.epoch);
    let foreign = other.api().await.server().await.epoch;
    assert_ne!(own, foreign);
    let request = |epoch: &str| WatchEventsRequest {
        epoch: epoch.into(),
        ..after(0)
    };
    for epoch in [&*foreign, "nonsense"] {
        let refused = api.watch(request(epoch)).await;
        Refusal::expect(refused, Code::FailedPrecondition, "EPOCH_MISMATCH");
    }
    let mut watch = api.watch(request(&own)).await.unwrap();
    assert_eq!(watch.bookmark().await.epoch, own);
}

/// E5
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn each_event_carries_the_full_task_and_an_end_its_output_tail() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = daemon
        .script("bytes 10000 exit 9")
        .with_name("n")
        .with_session("s")
        .with_labels([("k", "v")]);
    let task = api.start(request).await;
    let ended = api.ended(&task.id).await;
    let history = api.history_of(&task.id).await;
    for event in &history {
        let shown = task_of(event);
        assert_eq!(shown.revision, event.revision);
        assert_eq!(
            (shown.name(), shown.session(), shown.label("k")),
            ("n", "s", "v")
        );
        assert_eq!(shown.uid, task.uid);
        assert!(shown.has_command_of(&task));
        assert!(event.event_time.is_some());
        assert_eq!(
            event.output_tail.is_some(),
            event.r#type() == TaskEventType::Ended
        );
    }
    assert_eq!(types(&history), ONE_RUN);
    let states: Vec<TaskState> = history.iter().map(|event| task_of(event).state()).collect();
    assert_eq!(
        states,
        [TaskState::Starting, TaskState::Running, TaskState::Failed]
    );
    let end = history.last().unwrap();
    assert_eq!(end.task, Some(ended.clone()));
    assert_eq!(ended.output_bytes, 10_000);
    let tail = end.output_tail.as_ref().unwrap();
    assert_eq!(tail.end_offset, 10_000);
    assert_eq!(bytes(&tail.chunks), pattern(10_000)[10_000 - 4096..]);
    assert_eq!(tail.chunks[0].offset, 10_000 - 4096);
}

/// E6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn two_hundred_tasks_that_end_together_give_two_hundred_ends() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut watch = api.watch_after(0).await;
    let gate = daemon.gate("gate");
    let script = format!("gate {} exit 0", daemon.file("gate"));
    let mut ids = HashSet::new();
    for _ in 0..200 {
        ids.insert(api.start(daemon.script(&script)).await.id);
    }
    gate.open();
    let mut ended = Vec::new();
    while ended.len() < 200 {
        let event = watch.event().await;
        if event.r#type() == TaskEventType::Ended {
            assert_eq!(task_of(&event).state(), TaskState::Completed, "{event:?}");
            ended.push(task_of(&event).id.clone());
        }
    }
    assert_eq!(ended.iter().cloned().collect::<HashSet<_>>(), ids);
    assert_eq!(count(&api.history().await, TaskEventType::Ended), 200);
    assert_eq!(api.server().await.live_tasks, 0);
}

/// E7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn watchers_that_stop_reading_cost_constant_memory_and_delay_no_one_else() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    // A task's state is 256 KiB, so that anything buffered for a watcher shows.
    let labels: BTreeMap<_, _> = (0..16)
        .map(|n| (format!("k{n}"), "x".repeat(16 * 1024)))
        .collect();
    let start = async |tasks: usize| {
        for _ in 0..tasks {
            let labels = labels.clone();
            let request = argv(["true"]).with_labels(labels);
            let id = api.start(request).await.id;
            api.ended(&id).await;
        }
    };
    let mut stalled = Vec::new();
    for _ in 0..10 {
        stalled.push(daemon.api().await.watch_after(0).await);
    }
    let mut reader = api.watch_after(0).await;
    start(40).await;
    let before = process::memory(daemon.pid(), "VmRSS");
    // 120 more events would be 300 MiB for ten watchers that do not read.
    start(40).await;
    let grown = process::memory(daemon.pid(), "VmRSS").saturating_sub(before);
    assert!(
        grown < 20 << 20,
        "{} MiB more for watchers that do not read",
        grown >> 20
    );
    let newest = api.revision().await;
    assert_eq!(
        reader.up_to(newest).await.len() as u64,
        newest,
        "the reading watcher has them all"
    );
    for mut watch in stalled {
        assert_eq!(
            watch.up_to(newest).await.len() as u64,
            newest,
            "a stalled watcher can go on"
        );
    }
}

/// E8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bookmarks_come_while_nothing_matches() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let request = WatchEventsRequest {
        filter: Some(session("quiet")),
        bookmark_interval: Some(millis(100)),
        ..after(0)
    };
    let mut watch = api.watch(request).await.unwrap();
    let first = watch.bookmark().await;
    assert_eq!(first.epoch, api.server().await.epoch);
    let task = api.start(argv(["true"]).with_session("loud")).await;
    let end = api.ended(&task.id).await.revision;
    let mut last = first.revision;
    let mut beyond = 0;
    while beyond < 3 {
        let bookmark = watch.bookmark().await;
        assert!(bookmark.revision >= last, "bookmarks go backwards");
        last = bookmark.revision;
        beyond += u32::from(last >= end);
    }
    let task = api.start(argv(["true"]).with_session("quiet")).await;
    assert_eq!(task_of(&watch.event().await).id, task.id);
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn filters_and_types_select_events_and_keep_their_revisions() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for name in ["a", "b", "a", "b"] {
        let task = api.start(argv(["true"]).with_session(name)).await;
        api.ended(&task.id).await;
    }
    let request = WatchEventsRequest {
        filter: Some(session("a")),
        types: vec![TaskEventType::Ended.into(), TaskEventType::Created.into()],
        ..after(0)
    };
    let mut watch = api.watch(request).await.unwrap();
    let seen = watch.until(|event| event.revision >= 11).await;
    let history = api.history().await;
    let in_a = |task: &BackgroundTask| task.session() == "a";
    let of_a = |event: &TaskEvent| event.task.as_ref().is_some_and(in_a);
    let expected: Vec<TaskEvent> = history
        .into_iter()
        .filter(|event| of_a(event) && event.r#type() != TaskEventType::Started)
        .collect();
    assert_eq!(seen, expected);
}

/// E2
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn without_a_revision_a_watcher_starts_at_the_newest_event() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let old = api.start(argv(["true"])).await;
    let revision = api.ended(&old.id).await.revision;
    let mut watch = api.watch(WatchEventsRequest::default()).await.unwrap();
    assert_eq!(watch.bookmark().await.revision, revision);
    let new = api.start(argv(["true"])).await;
    assert_eq!(task_of(&watch.event().await).id, new.id);
}
