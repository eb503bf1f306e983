//! Cancel, List, Inspect and WatchEvents.

use heeler_tests::{
    history::after,
    request::{self, cancel_matching, cancel_session, ids},
    secs,
    v1::*,
};
use prost_types::Duration;
use tonic::Code;

use super::{Call, Case, Edge, NOT_IDS, bad, bad_spans, not_found, refused, text};

/// S2, C9
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_cancel_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let ok = || request::cancel(&id);
    let cancel = |field: &str, request| bad(field, Call::Cancel(request));
    let by = cancel_matching;
    let graceful = |policy| CancelRequest {
        how: Some(cancel_request::How::Graceful(policy)),
        ..ok()
    };
    let mut cases = vec![
        cancel("filter", CancelRequest::default()),
        cancel("filter", by(TaskFilter::default())),
        cancel("filter", cancel_session("")),
        cancel("filter.session_id", cancel_session(&text(257))),
        cancel("filter.task_ids[0]", request::cancel("")),
        cancel("filter.task_ids[1]", by(ids([&*id, &*id]))),
        cancel("filter.task_ids", by(ids(vec![id.clone(); 1001]))),
        cancel(
            "filter.states[0]",
            by(TaskFilter {
                states: vec![99],
                ..Default::default()
            }),
        ),
        cancel(
            "filter.kinds[1]",
            by(TaskFilter {
                kinds: vec![1, 99],
                ..Default::default()
            }),
        ),
        cancel(
            "filter.parent_id",
            by(TaskFilter {
                parent_id: "x".into(),
                ..Default::default()
            }),
        ),
        cancel(
            "reason",
            CancelRequest {
                reason: text(4097),
                ..ok()
            },
        ),
        cancel(
            "actor",
            CancelRequest {
                actor: text(257),
                ..ok()
            },
        ),
    ];
    for span in bad_spans() {
        let policy = StopPolicy {
            grace: Some(span),
            ..Default::default()
        };
        cases.push(cancel("graceful.grace", graceful(policy)));
    }
    for signal in ["TERMINATE", "SIGNOPE", "999", "0", "-1", " "] {
        let policy = StopPolicy {
            signal: signal.into(),
            ..Default::default()
        };
        cases.push(cancel("graceful.signal", graceful(policy)));
    }
    cases.extend(NOT_IDS.map(|id| not_found(Call::Cancel(request::cancel(id)))));
    edge.refuses(cases).await;
}

/// S2, L1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_list_and_inspect_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let list = |field: &str, request| bad(field, Call::List(request));
    let by = |filter| ListRequest {
        filter: Some(filter),
        ..Default::default()
    };
    let tokens = ["garbage", "AAAA", "\u{e9}", "' OR 1=1 --"].map(|token| {
        let request = ListRequest {
            page_token: token.into(),
            ..Default::default()
        };
        let case = refused(
            Code::InvalidArgument,
            "PAGE_TOKEN_MISMATCH",
            Call::List(request),
        );
        Case {
            field: Some("page_token".into()),
            ..case
        }
    });
    let mut cases = vec![
        list(
            "page_size",
            ListRequest {
                page_size: -1,
                ..Default::default()
            },
        ),
        list(
            "page_size",
            ListRequest {
                page_size: i32::MIN,
                ..Default::default()
            },
        ),
        list(
            "filter.states[1]",
            by(TaskFilter {
                states: vec![3, 99],
                ..Default::default()
            }),
        ),
        list(
            "filter.states[0]",
            by(TaskFilter {
                states: vec![0],
                ..Default::default()
            }),
        ),
        list(
            "filter.kinds[0]",
            by(TaskFilter {
                kinds: vec![99],
                ..Default::default()
            }),
        ),
        list(
            "filter.task_ids[1]",
            by(TaskFilter {
                task_ids: vec![id.clone(), "x".into()],
                ..Default::default()
            }),
        ),
        list(
            "filter.parent_id",
            by(TaskFilter {
                parent_id: "x".into(),
                ..Default::default()
            }),
        ),
        list(
            "filter.session_id",
            by(TaskFilter {
                session_id: text(257),
                ..Default::default()
            }),
        ),
    ];
    cases.extend(tokens);
    let inspect = |task_id: &str, tail| {
        Call::Inspect(InspectRequest {
            task_id: task_id.into(),
            output_tail_bytes: tail,
            ..InspectRequest::default()
        })
    };
    cases.push(bad("task_id", inspect("", None)));
    cases.push(bad(
        "output_tail_bytes",
        inspect(&id, Some((256 << 10) + 1)),
    ));
    cases.extend(NOT_IDS.map(|id| not_found(inspect(id, None))));
    edge.refuses(cases).await;
}

/// S2, E4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_watch_events_are_named() {
    let edge = Edge::new().await;
    let newest = edge.api.revision().await;
    let none = WatchEventsRequest::default;
    let watch = |field: &str, request| bad(field, Call::Watch(request));
    let filter = Some(TaskFilter {
        states: vec![99],
        ..Default::default()
    });
    let interval = |span| WatchEventsRequest {
        bookmark_interval: Some(span),
        ..none()
    };
    let foreign = WatchEventsRequest {
        epoch: "foreign".into(),
        ..after(0)
    };
    let mut cases = vec![
        watch(
            "after_revision",
            WatchEventsRequest {
                initial_state: true,
                ..after(0)
            },
        ),
        watch(
            "types[0]",
            WatchEventsRequest {
                types: vec![99],
                ..none()
            },
        ),
        watch(
            "types[1]",
            WatchEventsRequest {
                types: vec![1, 0],
                ..none()
            },
        ),
        watch("filter.states[0]", WatchEventsRequest { filter, ..none() }),
        watch(
            "bookmark_interval",
            interval(Duration {
                seconds: 0,
                nanos: 99_999_999,
            }),
        ),
        watch("bookmark_interval", interval(secs(0))),
        refused(
            Code::OutOfRange,
            "REVISION_OUT_OF_RANGE",
            Call::Watch(after(newest + 1)),
        ),
        refused(
            Code::FailedPrecondition,
            "EPOCH_MISMATCH",
            Call::Watch(foreign),
        ),
    ];
    cases.extend(bad_spans().map(|span| watch("bookmark_interval", interval(span))));
    let owning = |session: &str, window| WatchEventsRequest {
        own_session: Some(SessionOwnership {
            session_id: session.into(),
            reattach_window: window,
        }),
        ..none()
    };
    let session = "own_session.session_id";
    cases.push(watch(session, owning("", None)));
    cases.push(watch(session, owning(&"s".repeat(257), None)));
    let window = "own_session.reattach_window";
    let spans = bad_spans().into_iter().chain([secs(0)]);
    cases.extend(spans.map(|span| watch(window, owning("s", Some(span)))));
    edge.refuses(cases).await;
}
