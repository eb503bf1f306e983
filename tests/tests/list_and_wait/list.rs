//! Looking at tasks: List and Inspect.

use heeler_tests::{
    Api, Daemon, Refusal, SpawnRequestExt as _, api, argv, eventually_some, request::session, v1::*,
};
use tonic::Code;

fn everything() -> ListRequest {
    ListRequest {
        include_finished: true,
        ..Default::default()
    }
}

async fn ids(api: &Api, request: ListRequest) -> Vec<String> {
    api.list(request)
        .await
        .unwrap()
        .tasks
        .into_iter()
        .map(|task| task.id)
        .collect()
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn live_tasks_by_default_all_on_request_running_first_then_newest() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    assert_eq!(
        ids(&api, ListRequest::default()).await,
        [""; 0],
        "an empty list is no error"
    );
    assert_eq!(ids(&api, everything()).await, [""; 0]);

    let mut running = Vec::new();
    let mut over = Vec::new();
    for _ in 0..3 {
        running.push(daemon.run(&api, "forever").await.id);
        over.push(api.start(argv(["true"])).await.id);
        api.ended(over.last().unwrap()).await;
    }
    running.reverse();
    over.reverse();
    assert_eq!(ids(&api, ListRequest::default()).await, running);
    assert_eq!(ids(&api, everything()).await, [running, over].concat());
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn pages_are_neither_overlapping_nor_leaky_while_tasks_come_and_go() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut expected = Vec::new();
    for _ in 0..4 {
        expected.push(api.start(argv(["true"])).await.id);
        api.ended(expected.last().unwrap()).await;
    }
    for _ in 0..5 {
        expected.push(daemon.run(&api, "forever").await.id);
    }
    let mut seen: Vec<String> = Vec::new();
    let mut request = ListRequest {
        page_size: 2,
        ..everything()
    };
    loop {
        let page = api.list(request.clone()).await.unwrap();
        assert!(page.tasks.len() <= 2);
        seen.extend(page.tasks.iter().map(|task| task.id.clone()));
        // In between, one that was not shown yet ends, and a new one begins.
        let unseen = expected.iter().rev().find(|id| !seen.contains(id));
        if let Some(id) = unseen {
            api.stop(id, CancelMode::Force).await;
        }
        api.start(daemon.script("forever")).await;
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    expected.sort();
    let mut old: Vec<String> = seen
        .iter()
        .filter(|id| expected.contains(id))
        .cloned()
        .collect();
    old.sort();
    assert_eq!(old, expected, "each once");
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_token_goes_with_its_own_request_only() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..3 {
        api.start(daemon.script("forever").with_session("s")).await;
    }
    let request = ListRequest {
        page_size: 1,
        filter: Some(session("s")),
        ..Default::default()
    };
    let token = api.list(request.clone()).await.unwrap().next_page_token;
    assert_ne!(token, "");
    let with_token = |request: ListRequest| ListRequest {
        page_token: token.clone(),
        ..request
    };
    let changed = [
        ListRequest {
            filter: Some(session("other")),
            ..request.clone()
        },
        ListRequest {
            filter: None,
            ..request.clone()
        },
        ListRequest {
            include_finished: true,
            ..request.clone()
        },
    ];
    for other in changed {
        let refused = api.list(with_token(other)).await;
        let refusal = Refusal::expect(refused, Code::InvalidArgument, "PAGE_TOKEN_MISMATCH");
        assert_eq!(refusal.fields, ["page_token"]);
    }
    assert_eq!(api.list(with_token(request)).await.unwrap().tasks.len(), 1);
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn filters_choose_by_session_kind_state_labels_parent_and_id() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let labels = |value: &str| [("k".to_owned(), value.to_owned())].into();
    let one = SpawnRequest::default()
        .with_session("a")
        .with_labels(labels("1"));
    let one = daemon.run_as(&api, one, "forever").await.id;
    let two = SpawnRequest::default()
        .with_session("b")
        .with_labels(labels("2"))
        .with_kind(TaskKind::Agent)
        .with_parent(one.clone());
    let two = daemon.run_as(&api, two, "forever").await.id;
    let over = api.start(argv(["true"]).with_session("a")).await.id;
    api.ended(&over).await;
    let none = TaskFilter::default;
    let cases = [
        (session("a"), vec![&one, &over]),
        (
            TaskFilter {
                kinds: vec![TaskKind::Agent.into()],
                ..none()
            },
            vec![&two],
        ),
        (
            TaskFilter {
                states: vec![TaskState::Completed.into()],
                ..none()
            },
            vec![&over],
        ),
        (
            TaskFilter {
                states: vec![TaskState::Running.into()],
                ..none()
            },
            vec![&two, &one],
        ),
        (
            TaskFilter {
                labels: labels("1"),
                ..none()
            },
            vec![&one],
        ),
        (
            TaskFilter {
                labels: labels("3"),
                ..none()
            },
            vec![],
        ),
        (
            TaskFilter {
                parent_id: one.clone(),
                ..none()
            },
            vec![&two],
        ),
        (
            TaskFilter {
                task_ids: vec![one.clone(), over.clone()],
                ..none()
            },
            vec![&one, &over],
        ),
        (
            TaskFilter {
                kinds: vec![TaskKind::Agent.into()],
                ..session("a")
            },
            vec![],
        ),
    ];
    for (filter, expected) in cases {
        let request = ListRequest {
            filter: Some(filter.clone()),
            ..everything()
        };
        let found = ids(&api, request).await;
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }
    let states = TaskFilter {
        states: vec![TaskState::Completed.into()],
        ..none()
    };
    let request = ListRequest {
        filter: Some(states),
        ..Default::default()
    };
    assert_eq!(ids(&api, request).await, [over], "`states` decides alone");
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn page_sizes_are_fifty_by_default_and_a_thousand_at_most() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for _ in 0..55 {
        api.start(argv(["true"])).await;
    }
    let page = api.list(everything()).await.unwrap();
    assert_eq!(page.tasks.len(), 50);
    assert_ne!(page.next_page_token, "");
    let request = ListRequest {
        page_size: i32::MAX,
        ..everything()
    };
    assert_eq!(api.list(request).await.unwrap().tasks.len(), 55);
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_shows_the_tree_its_cpu_its_memory_and_how_many_it_is() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "burn 200 print said fork [ pid child fork [ setsid pid grandchild forever ] forever ] forever";
    let fixture = daemon.run(&api, script).await;
    let tree = fixture.processes(&["leader", "child", "grandchild"]).await;
    // What was written is not read from the pipe at the same moment.
    let said = ReadOutputRequest {
        wait: Some(heeler_tests::secs(30)),
        ..api::read(&fixture.id, 0)
    };
    api.read(said).await.unwrap();
    let shown = api.inspect(&fixture.id).await.unwrap();
    let pids: Vec<i32> = shown.processes.iter().map(|process| process.pid).collect();
    assert_eq!(
        pids,
        tree.iter().map(|process| process.pid).collect::<Vec<_>>()
    );
    assert_eq!(shown.processes[1].parent_pid, tree[0].pid);
    assert_eq!(shown.processes[2].parent_pid, tree[1].pid);
    for process in &shown.processes {
        assert!(process.command.contains("heeler-fixture"), "{process:?}");
        assert!(
            process.memory_bytes > 0 && process.start_time.is_some(),
            "{process:?}"
        );
        assert!(["R", "S", "D"].contains(&&*process.state), "{process:?}");
    }
    let used = shown.resources.unwrap();
    assert_eq!(used.process_count, 3);
    assert!(used.memory_bytes > 0);
    let cpu = used.cpu_time.unwrap();
    assert!(cpu.seconds > 0 || cpu.nanos >= 150_000_000, "{cpu:?}");
    assert_eq!(shown.task.unwrap().state(), TaskState::Running);
    assert_eq!(tail(shown.output_tail), "said\n");
    assert_eq!(shown.server.unwrap(), api.server().await);
}

fn tail(tail: Option<OutputTail>) -> String {
    let chunks = tail.unwrap().chunks;
    let bytes = chunks
        .iter()
        .flat_map(|chunk| api::raw(chunk).to_vec())
        .collect();
    String::from_utf8(bytes).unwrap()
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_of_a_finished_task_has_no_processes_and_what_it_used() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("burn 200 print bye exit 2")).await;
    api.ended(&task.id).await;
    let shown = api.inspect(&task.id).await.unwrap();
    assert_eq!(shown.processes, []);
    let used = shown.resources.unwrap();
    let cpu = used.cpu_time.unwrap();
    assert!(cpu.seconds > 0 || cpu.nanos >= 150_000_000, "{cpu:?}");
    assert!(used.memory_bytes > 0);
    assert_eq!(used.process_count, 0);
    assert_eq!(tail(shown.output_tail), "bye\n");
}

/// L3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn inspect_gives_as_much_of_the_output_as_was_asked_for() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api.start(daemon.script("bytes 300000")).await;
    api.ended(&task.id).await;
    let cases = [
        (None, 4096),
        (Some(0), 0),
        (Some(10), 10),
        (Some(256 * 1024), 256 * 1024),
    ];
    for (output_tail_bytes, expected) in cases {
        let request = InspectRequest {
            task_id: task.id.clone(),
            output_tail_bytes,
        };
        let shown = api.raw().inspect(request).await.unwrap().into_inner();
        let shown = shown.output_tail.unwrap();
        assert_eq!(shown.end_offset, 300_000);
        let bytes: Vec<u8> = shown
            .chunks
            .iter()
            .flat_map(|chunk| api::raw(chunk).to_vec())
            .collect();
        assert_eq!(
            bytes,
            heeler_tests::pattern(300_000)[300_000 - expected..],
            "{expected}"
        );
    }
}

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_running_task_is_not_removed_and_a_finished_one_goes_with_its_output() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let running = daemon.run(&api, "forever").await;
    let over = api.start(daemon.script("print something")).await;
    api.ended(&over.id).await;
    let revision = api.revision().await;
    for ids in [vec![&running.id], vec![&over.id, &running.id]] {
        let refused = api.remove(ids).await;
        let refusal = Refusal::expect(refused, Code::FailedPrecondition, "TASK_NOT_FINISHED");
        assert_eq!(refusal.value("task_id"), running.id);
        assert_eq!(refusal.value("state"), "RUNNING");
    }
    assert_eq!(api.revision().await, revision, "all of them or none");
    assert!(output_file(&daemon, &over.id).is_some());

    let mut watch = api.watch_after(revision).await;
    let answer = api.remove([&over.id]).await.unwrap();
    assert_eq!(answer.removed_task_ids, [&*over.id]);
    let event = watch.event().await;
    assert_eq!(
        (event.r#type(), event.revision),
        (TaskEventType::Removed, answer.revision)
    );
    Refusal::expect(
        api.inspect(&over.id).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    Refusal::expect(
        api.read(api::read(&over.id, 0)).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    Refusal::expect(
        api.remove([&over.id]).await,
        Code::NotFound,
        "TASK_NOT_FOUND",
    );
    assert_eq!(ids(&api, everything()).await, [&*running.id]);
    eventually_some("the output is gone", || {
        output_file(&daemon, &over.id).is_none().then_some(())
    })
    .await;
}

fn output_file(daemon: &Daemon, id: &str) -> Option<std::path::PathBuf> {
    let mut rest = vec![daemon.state_dir()];
    while let Some(path) = rest.pop() {
        if path.is_dir() {
            rest.extend(
                std::fs::read_dir(path)
                    .unwrap()
                    .flatten()
                    .map(|entry| entry.path()),
            );
        } else if path
            .file_name()
            .is_some_and(|name| name.to_string_lossy().contains(id))
        {
            return Some(path);
        }
    }
    None
}

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn every_finished_task_that_matches_can_be_removed_at_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for name in ["a", "a", "b"] {
        let task = api.start(argv(["true"]).with_session(name)).await;
        api.ended(&task.id).await;
    }
    let running = daemon
        .run_as(&api, SpawnRequest::default().with_session("a"), "forever")
        .await;
    let remove = |filter| RemoveRequest {
        target: Some(remove_request::Target::Finished(filter)),
    };
    let removed = api
        .raw()
        .remove(remove(session("a")))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(removed.removed_task_ids.len(), 2);
    let removed = api
        .raw()
        .remove(remove(TaskFilter::default()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(removed.removed_task_ids.len(), 1);
    let removed = api
        .raw()
        .remove(remove(TaskFilter::default()))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(removed.removed_task_ids.len(), 0, "nothing left, no error");
    assert_eq!(ids(&api, everything()).await, [running.id]);
}
