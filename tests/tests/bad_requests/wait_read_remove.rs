//! Wait, ReadOutput and Remove.

use heeler_tests::{
    request::{self, remove_finished, wait_for_session, wait_matching},
    secs,
    v1::*,
};
use prost_types::Duration;
use tonic::Code;

use super::{Call, Edge, NOT_IDS, bad, bad_spans, not_found, refused, text};

/// S2, L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_wait_are_named() {
    let edge = Edge::new().await;
    let (id, other) = (edge.running.id.clone(), edge.finished.clone());
    let ok = || request::wait([&id]);
    let wait = |field: &str, request| bad(field, Call::Wait(request));
    let on = |ids: &[&str]| Call::Wait(request::wait(ids.iter().copied()));
    let session = || wait_for_session("s");
    let many = vec![id.clone(); 1001];
    let mut cases = vec![
        wait("filter", WaitRequest::default()),
        wait("filter", wait_matching(TaskFilter::default())),
        wait(
            "filter.session_id",
            wait_matching(TaskFilter {
                session_id: "s".into(),
                ..request::ids([&id])
            }),
        ),
        wait("filter.session_id", wait_for_session(&text(257))),
        wait("filter.task_ids", request::wait(many)),
        wait("until", WaitRequest { until: 99, ..ok() }),
        wait(
            "count",
            WaitRequest {
                count: Some(0),
                ..ok()
            },
        ),
        wait(
            "count",
            WaitRequest {
                count: Some(2),
                ..ok()
            },
        ),
        wait(
            "count",
            WaitRequest {
                count: Some(1),
                ..session()
            },
        ),
        bad("filter.task_ids[0]", on(&[""])),
        bad("filter.task_ids[1]", on(&[&id, &id])),
        bad("filter.task_ids[2]", on(&[&id, &other, ""])),
        not_found(on(&[&id, "shell-aaaaaaaaaa"])),
    ];
    cases.extend(bad_spans().map(|span| {
        wait(
            "timeout",
            WaitRequest {
                timeout: Some(span),
                ..ok()
            },
        )
    }));
    cases.extend(NOT_IDS.map(|id| not_found(on(&[id]))));
    edge.refuses(cases).await;
}

/// S2, O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_read_output_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let read = |field: &str, request| bad(field, Call::Read(request));
    let wait = |span| ReadOutputRequest {
        wait: Some(span),
        ..request::read(&id, 0)
    };
    let mut cases = vec![
        read("task_id", request::read("", 0)),
        read(
            "view",
            ReadOutputRequest {
                view: 99,
                ..request::read(&id, 0)
            },
        ),
        read("wait", wait(secs(301))),
        read(
            "wait",
            wait(Duration {
                seconds: 300,
                nanos: 1,
            }),
        ),
        read("wait", wait(secs(i64::MAX))),
    ];
    cases.extend(bad_spans().map(|span| read("wait", wait(span))));
    cases.extend(NOT_IDS.map(|id| not_found(Call::Read(request::read(id, 0)))));
    edge.refuses(cases).await;
}

/// S2, L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_remove_are_named() {
    let edge = Edge::new().await;
    let (running, finished_id) = (edge.running.id.clone(), edge.finished.clone());
    let ids = |ids: &[&str]| Call::Remove(request::remove(ids.iter().copied()));
    let finished = |filter| Call::Remove(remove_finished(filter));
    let many = vec![finished_id.as_str(); 1001];
    let mut cases = vec![
        bad("filter", Call::Remove(RemoveRequest { filter: None })),
        bad("filter.task_ids", ids(&many)),
        bad("filter.task_ids[0]", ids(&[""])),
        bad("filter.task_ids[1]", ids(&[&finished_id, &finished_id])),
        bad(
            "filter.states[0]",
            finished(TaskFilter {
                states: vec![99],
                ..Default::default()
            }),
        ),
        refused(
            Code::FailedPrecondition,
            "TASK_NOT_FINISHED",
            ids(&[&running]),
        ),
        refused(
            Code::FailedPrecondition,
            "TASK_NOT_FINISHED",
            ids(&[&finished_id, &running]),
        ),
        not_found(ids(&[&finished_id, "shell-aaaaaaaaaa"])),
    ];
    cases.extend(NOT_IDS.map(|id| not_found(ids(&[id]))));
    edge.refuses(cases).await;
}
