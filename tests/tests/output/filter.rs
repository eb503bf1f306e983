//! Filters on output: by stream, by regular expression, with context, and while the task writes.

use std::time::{Duration, Instant};

use heeler_tests::{
    Api, Daemon, SpawnRequestExt as _, argv,
    output::{end, gap, raw, text},
    request::{live, read},
    secs, shell,
    v1::{read_output_request::Start, *},
    within,
};
use tokio::task::JoinSet;

fn filtered(id: &str, filter: OutputFilter) -> ReadOutputRequest {
    ReadOutputRequest {
        filter: Some(filter),
        ..read(id, 0)
    }
}

fn include(pattern: &str) -> OutputFilter {
    OutputFilter {
        include: pattern.into(),
        ..OutputFilter::default()
    }
}

/// The lines of all answers from the request on, each with its offset.
async fn all_lines(api: &Api, mut request: ReadOutputRequest) -> Vec<(u64, String)> {
    let mut lines = Vec::new();
    loop {
        let answer = api.read(request.clone()).await.unwrap();
        let line = |chunk: &OutputChunk| {
            let line = String::from_utf8_lossy(raw(chunk)).into_owned();
            (chunk.offset, line)
        };
        lines.extend(answer.chunks.iter().map(line));
        assert!(!answer.chunks.is_empty() || answer.next_offset >= answer.end_offset);
        if answer.next_offset >= answer.end_offset {
            return lines;
        }
        request.start = Some(Start::Offset(answer.next_offset));
    }
}

async fn texts(api: &Api, request: ReadOutputRequest) -> Vec<String> {
    let lines = all_lines(api, request).await;
    lines.into_iter().map(|(_, line)| line).collect()
}

/// O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn lines_are_included_excluded_and_shown_with_their_context() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("seq 1 20")).await.id;
    api.ended(&id).await;
    let numbers = |filter: OutputFilter, max_lines: u32| {
        let (api, request) = (api.clone(), filtered(&id, filter));
        async move {
            let request = ReadOutputRequest {
                max_lines,
                ..request
            };
            texts(&api, request).await.concat().replace('\n', " ")
        }
    };
    for max_lines in [0, 1, 2, 5] {
        let read = |filter| numbers(filter, max_lines);
        assert_eq!(read(include("5$")).await, "5 15 ");
        let excluded = OutputFilter {
            exclude: "1".into(),
            ..include("[05]")
        };
        assert_eq!(read(excluded).await, "5 20 ");
        let context = OutputFilter {
            lines_before: 2,
            lines_after: 1,
            ..include("^(4|7|20)$")
        };
        assert_eq!(read(context).await, "2 3 4 5 6 7 8 18 19 20 ");
        let inverted = OutputFilter {
            exclude: "1|2".into(),
            ..OutputFilter::default()
        };
        assert_eq!(read(inverted).await, "3 4 5 6 7 8 9 ");
    }
}

/// O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_search_with_context_reaches_the_end_and_gets_a_gap_once() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let context = OutputFilter {
        lines_before: 2,
        ..include("nowhere")
    };
    let id = api.start(shell("seq 1 20")).await.id;
    api.ended(&id).await;
    let answer = api.read(filtered(&id, context.clone())).await.unwrap();
    assert!(answer.chunks.is_empty() && answer.complete, "{answer:?}");
    assert_eq!(answer.next_offset, answer.end_offset);

    let truncated = shell("seq 1 1000000; sleep 60")
        .with_max_output(256 << 10)
        .with_on_output_limit(OutputLimitAction::Truncate);
    let id = api.start(truncated).await.id;
    let request = ReadOutputRequest {
        wait: Some(secs(60)),
        ..filtered(&id, context)
    };
    let first = within("the gap", api.read(request)).await.unwrap();
    let last = first.chunks.last().unwrap();
    assert!(gap(last).is_some(), "{first:?}");
    assert_eq!(first.next_offset, end(last), "{first:?}");
}

/// O12: wherever an answer ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn groups_of_lines_with_context_are_told_apart() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(shell("seq 1 20")).await.id;
    api.ended(&id).await;
    for (before, after, groups) in [(1, 1, "8 18 "), (0, 1, "4 9 19 "), (1, 0, "3 8 18 ")] {
        let filter = OutputFilter {
            lines_before: before,
            lines_after: after,
            ..include("^(1|4|5|9|19)$")
        };
        for max_lines in [0, 1, 2, 3] {
            for view in [OutputView::Raw, OutputView::Text, OutputView::Plain] {
                let request = ReadOutputRequest {
                    max_lines,
                    view: view.into(),
                    ..filtered(&id, filter.clone())
                };
                let begun = group_begins(&api, request).await;
                assert_eq!(begun, groups, "{before} {after} {max_lines} {view:?}");
            }
        }
    }
    let without = api.read(filtered(&id, include("5"))).await.unwrap();
    assert!(
        without
            .chunks
            .iter()
            .all(|chunk| chunk.begins_group.is_none())
    );
}

/// The lines that begin a group, in all answers from the request on.
async fn group_begins(api: &Api, mut request: ReadOutputRequest) -> String {
    let mut begun = String::new();
    loop {
        let answer = api.read(request.clone()).await.unwrap();
        for chunk in &answer.chunks {
            if chunk.begins_group.expect("a line with context") {
                let line = match &chunk.content {
                    Some(output_chunk::Content::Text(text)) => text.as_bytes(),
                    _ => raw(chunk),
                };
                begun += &String::from_utf8_lossy(line).replace('\n', " ");
            }
        }
        if answer.next_offset >= answer.end_offset {
            return begun;
        }
        request.start = Some(Start::Offset(answer.next_offset));
    }
}

/// O4, O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn one_stream_alone_can_be_read_in_bytes_and_in_lines() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "for i in 1 2 3; do printf \"o$i\\n\"; printf \"e$i\\n\" >&2; done; printf open";
    let id = api.start(shell(script)).await.id;
    api.ended(&id).await;
    let of = |stream: OutputStream, pattern: &str| {
        filtered(
            &id,
            OutputFilter {
                stream: stream.into(),
                ..include(pattern)
            },
        )
    };
    let stderr = texts(&api, of(OutputStream::Stderr, "")).await.concat();
    assert_eq!(stderr, "e1\ne2\ne3\n");
    let stdout = texts(&api, of(OutputStream::Stdout, "")).await.concat();
    assert_eq!(stdout, "o1\no2\no3\nopen");
    assert_eq!(
        texts(&api, of(OutputStream::Stdout, "2|open")).await,
        ["o2\n", "open"]
    );
    assert_eq!(
        texts(&api, of(OutputStream::Stderr, "2|open")).await,
        ["e2\n"]
    );
}

/// O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_read_from_its_next_offset_neither_repeats_nor_loses_a_line() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api.start(daemon.script("bytes 2000000")).await.id;
    api.ended(&id).await;
    let request = |max_bytes| ReadOutputRequest {
        max_bytes,
        ..filtered(&id, include("7$"))
    };
    let expected: Vec<_> = (0..200_000_u64)
        .filter(|line| line % 9_999 % 10 == 7)
        .map(|line| (line * 10, format!("{:09}\n", line % 9_999)))
        .collect();
    for max_bytes in [1000, 0] {
        assert!(
            all_lines(&api, request(max_bytes)).await == expected,
            "{max_bytes}"
        );
    }
    let tail = ReadOutputRequest {
        start: Some(Start::TailLines(3)),
        ..request(0)
    };
    assert_eq!(all_lines(&api, tail).await, expected[expected.len() - 3..]);
    let rare = ReadOutputRequest {
        start: Some(Start::TailLines(2)),
        ..filtered(&id, include("^000000017$"))
    };
    let last: Vec<_> = (0..200_000_u64).filter(|line| line % 9_999 == 17).collect();
    let found: Vec<_> = all_lines(&api, rare)
        .await
        .iter()
        .map(|line| line.0 / 10)
        .collect();
    assert_eq!(found, last[last.len() - 2..]);
}

/// O12: the other stream stops in the middle of a line.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_incomplete_line_delays_no_line_of_the_other_stream_and_is_returned_whole() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "raw 77616974 err one err two gate {} raw 696e670a exit 0",
        daemon.file("gate")
    );
    let fixture = daemon.run(&api, &script).await;
    let request = |offset| ReadOutputRequest {
        wait: Some(secs(60)),
        max_lines: 1,
        ..ReadOutputRequest {
            start: Some(Start::Offset(offset)),
            ..filtered(&fixture.id, include("."))
        }
    };
    let mut offset = 0;
    for expected in ["one\n", "two\n"] {
        let answer = api.read(request(offset)).await.unwrap();
        assert_eq!(raw(&answer.chunks[0]), expected.as_bytes());
        offset = answer.next_offset;
    }
    gate.open();
    let answer = api.read(request(offset)).await.unwrap();
    assert_eq!(raw(&answer.chunks[0]), b"waiting\n");
    assert_eq!(answer.chunks[0].offset, 0);
    let answer = api.read(request(answer.next_offset)).await.unwrap();
    assert_eq!((answer.chunks.len(), answer.complete), (0, true));
}

/// O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_filter_that_excludes_everything_keeps_waiting_and_returns_at_the_end() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let gate = daemon.gate("gate");
    let script = format!(
        "print one bytes 100000 pid ready gate {} print two exit 0",
        daemon.file("gate")
    );
    let fixture = daemon.run(&api, &script).await;
    fixture.process("ready").await;
    let request = ReadOutputRequest {
        wait: Some(secs(60)),
        ..filtered(&fixture.id, include("three"))
    };
    let polled = {
        let api = api.clone();
        tokio::spawn(async move { api.read(request).await })
    };
    api.output_reaches(&fixture.id, 100_004).await;
    // A snapshot does not wait, and says how far it has searched.
    let snapshot = api
        .read(filtered(&fixture.id, include("three")))
        .await
        .unwrap();
    assert_eq!((snapshot.chunks.len(), snapshot.complete), (0, false));
    assert_eq!(snapshot.next_offset, snapshot.end_offset);
    assert!(!polled.is_finished(), "returned without a line");
    gate.open();
    let answer = within("the end", polled).await.unwrap().unwrap();
    assert_eq!((answer.chunks.len(), answer.complete), (0, true));
    assert_eq!(answer.next_offset, answer.end_offset);
}

/// O5, O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn with_the_plain_view_lines_match_without_escape_sequences() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = api
        .start(shell(r"printf '\033[31merror\033[0m: \351 no\nother\n'"))
        .await
        .id;
    api.ended(&id).await;
    let request = |view: OutputView| ReadOutputRequest {
        view: view.into(),
        ..filtered(&id, include("^error:"))
    };
    let answer = api.read(request(OutputView::Plain)).await.unwrap();
    assert_eq!(answer.chunks.len(), 1);
    assert_eq!(text(&answer.chunks[0]), "error: \u{FFFD} no\n");
    let answer = api.read(request(OutputView::Text)).await.unwrap();
    assert_eq!(answer.chunks.len(), 0);
}

/// O12
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn hostile_expressions_delay_neither_other_searches_nor_other_calls() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let script = "head -c 3000000 /dev/urandom | od -An -v -tx1 | tr -d ' ' | tr 'a-f' '01' | tr 2-9 01 | head -c 6000000";
    let id = api.start(shell(script)).await.id;
    let small = api.start(shell("seq 1 100000; echo needle")).await.id;
    api.ended(&id).await;
    api.ended(&small).await;
    // Each line costs its length times the number of repetitions.
    let hostile = filtered(&id, include("[01]*1[01]{900}2$"));
    let attacker = daemon.api().await;
    let mut attacks = JoinSet::new();
    for _ in 0..8 {
        let (attacker, hostile) = (attacker.clone(), hostile.clone());
        attacks.spawn(async move { attacker.read(hostile).await });
    }
    let began = Instant::now();
    for _ in 0..20 {
        let answer = api.read(read(&small, 0)).await.unwrap();
        assert!(!answer.chunks.is_empty());
        api.list(ListRequest {
            filter: Some(live()),
            ..Default::default()
        })
        .await
        .unwrap();
        let started = api.start(argv(["true"])).await.id;
        api.ended(&started).await;
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "other calls took {took:?}");
    attacks.shutdown().await;
    let answer = within(
        "a search after the attack",
        api.read(filtered(&small, include("needle"))),
    )
    .await;
    assert_eq!(answer.unwrap().chunks.len(), 1);
}
