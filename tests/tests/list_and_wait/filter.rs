//! The same filters in List and in Cancel, and the tasks that List hides.

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, foreground, millis, queued,
    request::{cancel_matching, force, ids, live, session},
    v1::*,
};

async fn listed(api: &Api, request: ListRequest) -> Vec<String> {
    let page = api.list(request).await.unwrap();
    page.tasks.into_iter().map(|task| task.id).collect()
}

fn by(filter: TaskFilter) -> ListRequest {
    ListRequest {
        filter: Some(filter),
        ..Default::default()
    }
}

/// L8: stale tasks, tasks in the foreground, below a directory, in a queue, in a session, by name and by
/// prefix.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_filter_that_lists_tasks_also_stops_them() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let at = |name: &str| {
        std::fs::create_dir_all(daemon.path(name)).unwrap();
        let request = daemon.script("forever");
        request.with_working_directory(daemon.file(name))
    };
    let silent = at("other").with_stale_after(millis(100));
    let stale = api.start(silent).await.id;
    let front = api.start(
        foreground()
            .with_command_of(at("other"))
            .with_working_directory("/"),
    );
    let front = front.await.id;
    let top = api.start(at("work")).await.id;
    let below = api.start(at("work/deep/er")).await.id;
    let beside = api.start(at("work-not")).await.id;
    let first = api.start(queued("q", at("other"))).await.id;
    let second = api.start(queued("q", at("other"))).await.id;
    let of_session = api.start(at("other").with_session("s")).await.id;
    let named = api.start(at("other").with_name("a name")).await.id;
    let prefixed = api.start(at("other")).await.id;
    let mut watch = api.watch_after(0).await;
    watch.until_of(&stale, TaskEventType::Stale).await;
    assert_eq!(api.task(&second).await.state(), TaskState::Queued);

    let none = TaskFilter::default;
    let cases = [
        (
            TaskFilter {
                stale: Some(true),
                ..none()
            },
            vec![stale],
        ),
        (
            TaskFilter {
                placement: Placement::Foreground.into(),
                ..none()
            },
            vec![front],
        ),
        (
            TaskFilter {
                directory: daemon.file("work"),
                ..none()
            },
            vec![below, top],
        ),
        (
            TaskFilter {
                queue: "q".into(),
                ..none()
            },
            vec![second, first],
        ),
        (session("s"), vec![of_session]),
        (
            TaskFilter {
                name: "a name".into(),
                ..none()
            },
            vec![named],
        ),
        (
            TaskFilter {
                id_prefix: prefixed[6..12].to_owned(),
                ..none()
            },
            vec![prefixed],
        ),
        (
            TaskFilter {
                stale: Some(false),
                placement: Placement::Background.into(),
                directory: "/".into(),
                ..none()
            },
            vec![beside],
        ),
    ];
    for (filter, expected) in cases {
        assert_eq!(
            listed(&api, by(filter.clone())).await,
            expected,
            "{filter:?}"
        );
        let request = CancelRequest {
            how: force(),
            wait: true,
            ..cancel_matching(filter.clone())
        };
        let results = api.cancel(request).await.unwrap().results;
        let stopped: Vec<String> = results
            .iter()
            .map(|result| result.task.as_ref().unwrap().id.clone())
            .collect();
        assert_eq!(stopped, expected, "{filter:?}");
        assert_eq!(
            listed(&api, by(filter.clone())).await,
            [""; 0],
            "{filter:?}"
        );
    }
    assert_eq!(listed(&api, by(live())).await, [""; 0]);
}

/// L8: a filter with ids names tasks; its other fields narrow them.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn other_fields_narrow_the_named_tasks() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let in_queue = api.start(queued("q", daemon.script("forever"))).await.id;
    let other = api.start(daemon.script("forever")).await.id;
    let filter = TaskFilter {
        queue: "q".into(),
        ..ids([&in_queue, &other])
    };
    let request = CancelRequest {
        how: force(),
        wait: true,
        ..cancel_matching(filter)
    };
    let results = api.cancel(request).await.unwrap().results;
    assert_eq!(results.len(), 1, "{results:?}");
    assert_eq!(results[0].task.as_ref().unwrap().id, in_queue);
    assert_eq!(api.task(&other).await.state(), TaskState::Running);
}

/// F12, L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn list_hides_tasks_that_finished_in_the_foreground() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let start = |script: &str| api.start(foreground().with_command_of(daemon.script(script)));
    let running = start("forever").await.id;
    let gate = daemon.gate("gate");
    let detached = start(&format!("gate {} exit 0", daemon.file("gate")))
        .await
        .id;
    api.detach_one(&detached).await;
    gate.open();
    api.ended(&detached).await;
    let hidden = start("exit 3").await.id;
    let mut attachment = api.attach(&hidden).await;
    attachment.ended().await;
    api.ended(&hidden).await;

    let finished = |filter| ListRequest {
        include_finished: true,
        filter,
        ..Default::default()
    };
    let failed = TaskFilter {
        states: vec![TaskState::Failed.into()],
        ..Default::default()
    };
    assert_eq!(listed(&api, ListRequest::default()).await, [&*running]);
    assert_eq!(listed(&api, finished(None)).await, [&*running, &*detached]);
    assert_eq!(listed(&api, finished(Some(failed.clone()))).await, [""; 0]);
    assert_eq!(
        listed(&api, finished(Some(ids([&hidden])))).await,
        [&*hidden]
    );
    let every = ListRequest {
        include_finished_foreground: true,
        ..finished(None)
    };
    assert_eq!(listed(&api, every).await, [&*running, &*hidden, &*detached]);
    assert_eq!(api.task(&hidden).await.placement(), Placement::Foreground);
    assert_eq!(api.ended(&hidden).await.state(), TaskState::Failed);
    assert_eq!(api.remove_finished(failed).await, [&*hidden]);
}
