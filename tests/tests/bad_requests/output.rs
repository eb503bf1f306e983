//! Filters, places and patterns in output: ReadOutput, FollowOutput, UpdateTask, Wait and Spawn.

use heeler_tests::{
    argv, millis, request, secs,
    v1::{
        follow_output_request, head_and_tail::Head, head_and_tail::Tail,
        read_output_request::Start, *,
    },
};
use prost_types::Timestamp;
use tonic::Code;

use super::{Call, Case, Edge, NOT_IDS, bad, bad_spans, not_found, refused, text};

/// Expressions that are refused.
fn bad_expressions() -> Vec<String> {
    let mut expressions: Vec<_> = ["(a", "a{2,1}", "*", r"(a)\1", "(?=a)", r"\w{1000}", "[z-a]"]
        .map(str::to_owned)
        .into();
    expressions.push("((a{100}){100}){100}".to_owned());
    expressions.push("(".repeat(4000));
    expressions.push("a".repeat(4097));
    expressions
}

fn filters() -> Vec<(&'static str, OutputFilter)> {
    let include = |expression: String| OutputFilter {
        include: expression,
        ..OutputFilter::default()
    };
    let context = |lines_before, lines_after, include: &str| OutputFilter {
        include: include.to_owned(),
        lines_before,
        lines_after,
        ..OutputFilter::default()
    };
    let mut filters = vec![
        (
            "stream",
            OutputFilter {
                stream: 3,
                ..OutputFilter::default()
            },
        ),
        ("lines_before", context(1, 0, "")),
        ("lines_after", context(0, 1, "")),
        ("lines_before", context(101, 0, "a")),
        ("lines_after", context(0, u32::MAX, "a")),
    ];
    for expression in bad_expressions() {
        filters.push(("include", include(expression.clone())));
        filters.push((
            "exclude",
            OutputFilter {
                exclude: expression,
                ..include("a".to_owned())
            },
        ));
    }
    filters
}

/// S2, O12, O13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_filters_and_places_of_read_output_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let ok = || request::read(&id, 0);
    let read = |field: &str, request| bad(field, Call::Read(request));
    let start = |start| ReadOutputRequest {
        start: Some(start),
        ..ok()
    };
    let parts = |head, tail| start(Start::HeadAndTail(HeadAndTail { head, tail }));
    let some = || parts(Some(Head::HeadLines(1)), None);
    let with_filter = |filter| ReadOutputRequest {
        filter: Some(filter),
        ..ok()
    };
    let lines = OutputFilter {
        include: "a".into(),
        ..OutputFilter::default()
    };
    let malformed = Timestamp {
        seconds: 0,
        nanos: -1,
    };
    let large = Some(Head::HeadBytes((512 << 10) + 1));
    let mut cases = vec![
        read("since", start(Start::Since(malformed))),
        read("head_and_tail.head_bytes", parts(large, None)),
        read(
            "head_and_tail.tail_bytes",
            parts(None, Some(Tail::TailBytes(u32::MAX))),
        ),
        read(
            "filter",
            ReadOutputRequest {
                filter: Some(OutputFilter::default()),
                ..some()
            },
        ),
        read(
            "wait",
            ReadOutputRequest {
                wait: Some(secs(1)),
                ..some()
            },
        ),
        read(
            "max_bytes",
            ReadOutputRequest {
                max_bytes: 1,
                ..some()
            },
        ),
        read(
            "max_lines",
            ReadOutputRequest {
                max_lines: 1,
                ..some()
            },
        ),
        read(
            "tail_lines",
            ReadOutputRequest {
                filter: Some(lines),
                ..start(Start::TailLines(65_537))
            },
        ),
    ];
    cases.extend(
        filters()
            .into_iter()
            .map(|(field, filter)| read(&format!("filter.{field}"), with_filter(filter))),
    );
    edge.refuses(cases).await;
}

/// S2, O15
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_fields_of_follow_output_are_named() {
    let edge = Edge::new().await;
    let ok = FollowOutputRequest::default;
    let follow = |field: &str, request| bad(field, Call::Follow(request));
    let cursor = |id: &str| OutputCursor {
        task_id: id.to_owned(),
        offset: None,
    };
    let at = |ids: &[&str]| FollowOutputRequest {
        cursors: ids.iter().map(|id| cursor(id)).collect(),
        ..ok()
    };
    let known = edge.finished.clone();
    let since = follow_output_request::Start::Since(Timestamp {
        seconds: 1,
        nanos: 1_000_000_000,
    });
    let mut cases = vec![
        follow("view", FollowOutputRequest { view: 9, ..ok() }),
        follow("until", FollowOutputRequest { until: 9, ..ok() }),
        follow(
            "since",
            FollowOutputRequest {
                start: Some(since),
                ..ok()
            },
        ),
        follow(
            "include_finished",
            FollowOutputRequest {
                include_finished: true,
                after_revision: Some(0),
                ..ok()
            },
        ),
        follow(
            "bookmark_interval",
            FollowOutputRequest {
                bookmark_interval: Some(millis(99)),
                ..ok()
            },
        ),
        follow("cursors[1].task_id", at(&[&known, ""])),
        follow("cursors[0].task_id", at(&["../../etc/passwd"])),
        follow("cursors", at(&vec![&*known; 10_001])),
        follow(
            "filter.placement",
            FollowOutputRequest {
                filter: Some(TaskFilter {
                    placement: 9,
                    ..TaskFilter::default()
                }),
                ..ok()
            },
        ),
        refused(
            Code::OutOfRange,
            "REVISION_OUT_OF_RANGE",
            Call::Follow(FollowOutputRequest {
                after_revision: Some(u64::MAX),
                ..ok()
            }),
        ),
        refused(
            Code::FailedPrecondition,
            "EPOCH_MISMATCH",
            Call::Follow(FollowOutputRequest {
                epoch: "other".into(),
                ..ok()
            }),
        ),
    ];
    cases.extend(filters().into_iter().map(|(field, filter)| {
        let request = FollowOutputRequest {
            output_filter: Some(filter),
            ..ok()
        };
        follow(&format!("output_filter.{field}"), request)
    }));
    cases.extend(bad_spans().map(|span| {
        let request = FollowOutputRequest {
            bookmark_interval: Some(span),
            ..ok()
        };
        follow("bookmark_interval", request)
    }));
    edge.refuses(cases).await;
}

fn pattern(name: &str, regex: &str) -> OutputPattern {
    OutputPattern {
        name: name.to_owned(),
        regex: regex.to_owned(),
        ..OutputPattern::default()
    }
}

/// Lists of patterns that are refused, and the field that is named below the list.
fn bad_patterns() -> Vec<(&'static str, Vec<OutputPattern>)> {
    let ok = || pattern("a", "a");
    let mut lists = vec![
        ("[0].name", vec![pattern("", "a")]),
        ("[0].name", vec![pattern(&text(257), "a")]),
        ("[1].name", vec![ok(), pattern("a", "b")]),
        ("[0].regex", vec![pattern("a", "")]),
        ("[0].stream", vec![OutputPattern { stream: 3, ..ok() }]),
        (
            "[0].cooldown",
            vec![OutputPattern {
                cooldown: Some(secs(86_401)),
                ..ok()
            }],
        ),
        (
            "[0].max_events",
            vec![OutputPattern {
                max_events: 10_001,
                ..ok()
            }],
        ),
        (
            "",
            (0..17)
                .map(|number| pattern(&number.to_string(), "a"))
                .collect(),
        ),
    ];
    for span in bad_spans() {
        lists.push((
            "[0].cooldown",
            vec![OutputPattern {
                cooldown: Some(span),
                ..ok()
            }],
        ));
    }
    for expression in bad_expressions() {
        lists.push((
            "[1].regex",
            vec![pattern("b", "b"), pattern("a", &expression)],
        ));
    }
    lists
}

/// S2, O16
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_patterns_of_spawn_and_update_task_are_named() {
    let edge = Edge::new().await;
    let (id, finished) = (edge.running.id.clone(), edge.finished.clone());
    let update = |id: &str, set_patterns, remove: &[&str]| {
        Call::Update(UpdateTaskRequest {
            task_id: id.to_owned(),
            set_patterns,
            remove_patterns: remove.iter().map(|name| (*name).to_owned()).collect(),
        })
    };
    let one = || vec![pattern("a", "a")];
    let mut cases: Vec<Case> = vec![
        bad("task_id", update("", one(), &[])),
        bad("set_patterns", update(&id, Vec::new(), &[])),
        bad("remove_patterns[1]", update(&id, one(), &["b", "a"])),
        refused(
            Code::FailedPrecondition,
            "TASK_FINISHED",
            update(&finished, one(), &[]),
        ),
    ];
    cases.extend(NOT_IDS.map(|id| not_found(update(id, one(), &[]))));
    for (field, patterns) in bad_patterns() {
        cases.push(bad(
            &format!("set_patterns{field}"),
            update(&id, patterns.clone(), &[]),
        ));
        let mut spawn = argv(["true"]);
        spawn.spec.as_mut().unwrap().output = Some(OutputPolicy {
            patterns,
            ..OutputPolicy::default()
        });
        cases.push(bad(
            &format!("spec.output.patterns{field}"),
            Call::Spawn(spawn),
        ));
    }
    edge.refuses(cases).await;
}

/// S2, L4
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn invalid_searches_of_wait_are_named() {
    let edge = Edge::new().await;
    let id = edge.running.id.clone();
    let matched = |search| WaitRequest {
        until: WaitCondition::Matched.into(),
        r#match: search,
        ..request::wait([&id])
    };
    let search = |regex: &str| {
        Some(OutputSearch {
            regex: regex.to_owned(),
            ..OutputSearch::default()
        })
    };
    let wait = |field: &str, request| bad(field, Call::Wait(request));
    let mut cases = vec![
        wait("match", matched(None)),
        wait("match.regex", matched(search(""))),
        wait(
            "match.stream",
            matched(Some(OutputSearch {
                stream: 3,
                regex: "a".into(),
            })),
        ),
        wait(
            "match",
            WaitRequest {
                until: WaitCondition::Finished.into(),
                ..matched(search("a"))
            },
        ),
        wait(
            "filter.session_id",
            WaitRequest {
                filter: request::wait_for_session("s").filter,
                ..matched(search("a"))
            },
        ),
    ];
    cases.extend(
        bad_expressions()
            .iter()
            .map(|regex| wait("match.regex", matched(search(regex)))),
    );
    edge.refuses(cases).await;
}
