//! Filters: the fields that each call refuses, and the ids that no task has.

use heeler_tests::{
    Daemon, Refusal, SpawnRequestExt as _, foreground,
    request::{cancel_matching, detach_matching, ids, remove_finished, session, wait_matching},
    v1::*,
};
use tonic::Code;

use super::{Call, Case, Edge, NOT_IDS, bad, not_found, text};

/// Every call that takes a filter, with this one.
fn every_call(filter: &TaskFilter) -> [Call; 6] {
    let filter = || filter.clone();
    [
        Call::Cancel(cancel_matching(filter())),
        Call::Detach(detach_matching(filter())),
        Call::Wait(wait_matching(filter())),
        Call::Remove(remove_finished(filter())),
        Call::List(ListRequest {
            filter: Some(filter()),
            ..Default::default()
        }),
        Call::Watch(WatchEventsRequest {
            filter: Some(filter()),
            ..Default::default()
        }),
    ]
}

/// S2, L8
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_placements_directories_and_queues_are_named_by_every_call() {
    let none = TaskFilter::default;
    let filters = [
        (
            "filter.placement",
            TaskFilter {
                placement: 9,
                ..none()
            },
        ),
        (
            "filter.placement",
            TaskFilter {
                placement: -1,
                ..none()
            },
        ),
        (
            "filter.directory",
            TaskFilter {
                directory: "src".into(),
                ..none()
            },
        ),
        (
            "filter.directory",
            TaskFilter {
                directory: "/a\0b".into(),
                ..none()
            },
        ),
        (
            "filter.directory",
            TaskFilter {
                directory: format!("/{}", text(4096)),
                ..none()
            },
        ),
        (
            "filter.queue",
            TaskFilter {
                queue: text(257),
                ..none()
            },
        ),
        (
            "filter.port",
            TaskFilter {
                port: 65_536,
                ..none()
            },
        ),
    ];
    let cases = filters
        .iter()
        .flat_map(|(field, filter)| every_call(filter).map(|call| bad(field, call)));
    let cases = cases.collect();
    Edge::new().await.refuses(cases).await;
}

/// S2, F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_filters_of_detach_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let detach = |field: &str, filter| bad(field, Call::Detach(detach_matching(filter)));
    let mut cases = vec![
        bad("filter", Call::Detach(DetachRequest::default())),
        detach("filter", TaskFilter::default()),
        detach("filter", session("")),
        detach("filter.session_id", session(&text(257))),
        detach("filter.task_ids[0]", ids([""])),
        detach("filter.task_ids[1]", ids([&id, &id])),
    ];
    cases.extend(NOT_IDS.map(|id| not_found(Call::Detach(detach_matching(ids([id]))))));
    edge.refuses(cases).await;
}

/// Sets one field of a filter.
type Set = fn(&mut TaskFilter);

/// S2, L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn wait_takes_ids_alone_or_a_session_alone() {
    let edge = Edge::new().await;
    let others: [(&str, Set); 9] = [
        ("filter.kinds", |filter| filter.kinds = vec![1]),
        ("filter.states", |filter| filter.states = vec![3]),
        ("filter.labels", |filter| {
            filter.labels = [("k".into(), "v".into())].into()
        }),
        ("filter.parent_id", |filter| {
            filter.parent_id = "shell-aaaaaaaaaa".into()
        }),
        ("filter.stale", |filter| filter.stale = Some(true)),
        ("filter.placement", |filter| filter.placement = 1),
        ("filter.directory", |filter| filter.directory = "/".into()),
        ("filter.queue", |filter| filter.queue = "q".into()),
        ("filter.port", |filter| filter.port = 80),
    ];
    let mut cases: Vec<Case> = Vec::new();
    for (field, set) in others {
        for mut filter in [TaskFilter::default(), ids([&edge.running.id]), session("s")] {
            set(&mut filter);
            cases.push(bad(field, Call::Wait(wait_matching(filter))));
        }
    }
    edge.refuses(cases).await;
}

/// S2, Y3
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_port_selects_live_tasks_for_calls_that_look_at_them_once() {
    let edge = Edge::new().await;
    let mut on_port = ids([&edge.finished]);
    on_port.port = 80;
    let cases = vec![
        bad(
            "filter.port",
            Call::Remove(remove_finished(on_port.clone())),
        ),
        bad(
            "filter.port",
            Call::Watch(WatchEventsRequest {
                filter: Some(on_port),
                ..Default::default()
            }),
        ),
    ];
    edge.refuses(cases).await;
}

/// C9, F7, L4, L6: one unknown id refuses the call, and the tasks beside it are left alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_unknown_id_in_a_filter_is_not_found_and_no_other_task_is_touched() {
    let edge = Edge::new().await;
    let (running, finished) = (edge.running.id.clone(), edge.finished.clone());
    let mut cases = Vec::new();
    for unknown in NOT_IDS {
        for beside in [&running, &finished] {
            for filter in [ids([&**beside, unknown]), ids([unknown, &**beside])] {
                let calls = [
                    Call::Cancel(cancel_matching(filter.clone())),
                    Call::Detach(detach_matching(filter.clone())),
                    Call::Wait(wait_matching(filter.clone())),
                ];
                cases.extend(calls.map(not_found));
            }
        }
        // A running task beside it would be refused for not being finished.
        let filter = ids([&*finished, unknown]);
        cases.push(not_found(Call::Remove(remove_finished(filter))));
    }
    edge.refuses(cases).await;
}

/// F7
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_detach_that_names_an_unknown_task_detaches_nothing() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let task = api
        .start(foreground().with_command_of(daemon.script("forever")))
        .await;
    let filter = ids([&*task.id, "shell-aaaaaaaaaa"]);
    let refused = api.detach(detach_matching(filter)).await;
    let refusal = Refusal::expect(refused, Code::NotFound, "TASK_NOT_FOUND");
    assert_eq!(refusal.value("task_id"), "shell-aaaaaaaaaa");
    assert_eq!(api.task(&task.id).await, task);
}
