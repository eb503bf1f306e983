//! Wait, ReadOutput and Remove.

use heeler_tests::{api, secs, v1::*};
use prost_types::Duration;
use tonic::Code;

use super::{Call, Edge, NOT_IDS, bad, bad_spans, not_found, refused, text};

/// L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_waits_are_named() {
    let edge = Edge::new().await;
    let (id, other) = (edge.running.id.clone(), edge.over.clone());
    let ok = || WaitRequest {
        task_ids: vec![id.clone()],
        ..Default::default()
    };
    let wait = |field: &str, request| bad(field, Call::Wait(request));
    let on = |ids: &[&str]| {
        let task_ids = ids.iter().map(|id| (*id).to_owned()).collect();
        Call::Wait(WaitRequest {
            task_ids,
            ..Default::default()
        })
    };
    let session = || WaitRequest {
        session_id: "s".into(),
        ..Default::default()
    };
    let many = vec![id.clone(); 1001];
    let mut cases = vec![
        wait("task_ids", WaitRequest::default()),
        wait(
            "session_id",
            WaitRequest {
                session_id: "s".into(),
                ..ok()
            },
        ),
        wait(
            "session_id",
            WaitRequest {
                session_id: text(257),
                ..Default::default()
            },
        ),
        wait(
            "task_ids",
            WaitRequest {
                task_ids: many,
                ..Default::default()
            },
        ),
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
        bad("task_ids[0]", on(&[""])),
        bad("task_ids[1]", on(&[&id, &id])),
        bad("task_ids[2]", on(&[&id, &other, ""])),
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

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_reads_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let read = |field: &str, request| bad(field, Call::Read(request));
    let wait = |span| ReadOutputRequest {
        wait: Some(span),
        ..api::read(&id, 0)
    };
    let mut cases = vec![
        read("task_id", api::read("", 0)),
        read(
            "view",
            ReadOutputRequest {
                view: 99,
                ..api::read(&id, 0)
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
    cases.extend(NOT_IDS.map(|id| not_found(Call::Read(api::read(id, 0)))));
    edge.refuses(cases).await;
}

/// L6
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn bad_removals_are_named() {
    let edge = Edge::new().await;
    let (running, over) = (edge.running.id.clone(), edge.over.clone());
    let by = |target| {
        Call::Remove(RemoveRequest {
            target: Some(target),
        })
    };
    let ids = |ids: &[&str]| {
        let task_ids = ids.iter().map(|id| (*id).to_owned()).collect();
        by(remove_request::Target::Tasks(TaskIds { task_ids }))
    };
    let finished = |filter| by(remove_request::Target::Finished(filter));
    let many = vec![over.as_str(); 1001];
    let mut cases = vec![
        bad("target", Call::Remove(RemoveRequest { target: None })),
        bad("tasks.task_ids", ids(&[])),
        bad("tasks.task_ids", ids(&many)),
        bad("tasks.task_ids[0]", ids(&[""])),
        bad("tasks.task_ids[1]", ids(&[&over, &over])),
        bad(
            "finished.states[0]",
            finished(TaskFilter {
                states: vec![99],
                ..Default::default()
            }),
        ),
        bad(
            "finished.task_ids[0]",
            finished(TaskFilter {
                task_ids: vec!["x".into()],
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
            ids(&[&over, &running]),
        ),
        not_found(ids(&[&over, "shell-aaaaaaaaaa"])),
    ];
    cases.extend(NOT_IDS.map(|id| not_found(ids(&[id]))));
    edge.refuses(cases).await;
}
