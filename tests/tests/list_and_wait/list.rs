//! List: order, pages and filters.

use heeler_tests::{Api, Daemon, Refusal, SpawnRequestExt as _, argv, request::session, v1::*};
use tonic::Code;

/// A list of live and finished tasks.
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
async fn list_shows_live_tasks_or_all_running_first_then_newest() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    assert_eq!(
        ids(&api, ListRequest::default()).await,
        [""; 0],
        "an empty list"
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
async fn pages_show_each_task_once_while_tasks_start_and_end() {
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
        // Between the pages, a task that was not shown yet ends, and a new one starts.
        let unseen = expected.iter().rev().find(|id| !seen.contains(id));
        if let Some(id) = unseen {
            api.kill(id).await;
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
    assert_eq!(old, expected, "each task once");
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_page_token_is_refused_with_a_changed_filter() {
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
        ListRequest {
            include_finished_foreground: true,
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
async fn filters_select_by_session_kind_state_labels_parent_and_id() {
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
    assert_eq!(
        ids(&api, request).await,
        [over],
        "`states` overrides the default of live tasks"
    );
}

/// L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_page_size_is_fifty_by_default_and_at_most_a_thousand() {
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
