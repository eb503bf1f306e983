//! Where a read starts and ends: by lines, by time, and the beginning and the end in one answer.

use heeler_tests::{
    Api, Daemon,
    output::{bytes, gap, raw, text},
    pattern,
    request::read,
    shell,
    v1::{
        head_and_tail::{Head, Tail},
        read_output_request::Start,
        *,
    },
};
use prost_types::Timestamp;

fn from(id: &str, start: Start) -> ReadOutputRequest {
    ReadOutputRequest {
        start: Some(start),
        ..read(id, 0)
    }
}

async fn finished(api: &Api, script: &str) -> String {
    let id = api.start(shell(script)).await.id;
    api.ended(&id).await;
    id
}

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn the_last_lines_can_be_read_and_a_line_without_an_end_counts() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let whole = finished(&api, "printf 'one\\ntwo\\n\\nfour\\n'").await;
    let open = finished(&api, "printf 'one\\ntwo'").await;
    let none = finished(&api, "true").await;
    let cases = [
        (&whole, 0, ""),
        (&whole, 1, "four\n"),
        (&whole, 2, "\nfour\n"),
        (&whole, 3, "two\n\nfour\n"),
        (&whole, 4, "one\ntwo\n\nfour\n"),
        (&whole, u64::MAX, "one\ntwo\n\nfour\n"),
        (&open, 1, "two"),
        (&open, 2, "one\ntwo"),
        (&none, 5, ""),
    ];
    for (id, lines, expected) in cases {
        let answer = api.read(from(id, Start::TailLines(lines))).await.unwrap();
        let given = String::from_utf8(bytes(&answer.chunks)).unwrap();
        assert_eq!(given, expected, "{lines}");
        assert_eq!(answer.next_offset, answer.end_offset);
    }
    // More than is looked at in one go.
    let long = api.start(daemon.script("bytes 3000000")).await.id;
    api.ended(&long).await;
    let answer = api
        .read(ReadOutputRequest {
            max_bytes: 20,
            ..from(&long, Start::TailLines(200_000))
        })
        .await;
    let answer = answer.unwrap();
    assert_eq!(answer.chunks[0].offset, 1_000_000);
    assert_eq!(bytes(&answer.chunks), pattern(1_000_020)[1_000_000..]);
}

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_answer_ends_after_as_many_lines_as_requested() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = finished(&api, "printf 'a\\nb\\nc\\nd'").await;
    let mut offset = 0;
    let mut answers = Vec::new();
    loop {
        let request = ReadOutputRequest {
            max_lines: 2,
            ..read(&id, offset)
        };
        let answer = api.read(request).await.unwrap();
        if answer.chunks.is_empty() {
            break;
        }
        answers.push(String::from_utf8(bytes(&answer.chunks)).unwrap());
        offset = answer.next_offset;
    }
    assert_eq!(answers, ["a\nb\n", "c\nd"]);
}

/// O1
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn output_can_be_read_from_a_time_on() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let mut script = String::new();
    for n in 0..20 {
        let gate = daemon.file(&format!("step-{n}"));
        script += &format!("print {n} bytes 20000 await {gate} ");
    }
    let fixture = daemon.run(&api, &script).await;
    for n in 0..20_u64 {
        api.output_reaches(&fixture.id, (n + 1) * 20_000).await;
        std::fs::write(daemon.path(&format!("step-{n}")), "").unwrap();
    }
    api.ended(&fixture.id).await;
    let mut chunks = Vec::new();
    let mut offset = 0;
    loop {
        let answer = api.read(read(&fixture.id, offset)).await.unwrap();
        if answer.chunks.is_empty() {
            break;
        }
        offset = answer.next_offset;
        chunks.extend(answer.chunks);
    }
    for chunk in chunks.iter().step_by(7) {
        let since = Start::Since(chunk.read_time.unwrap());
        let answer = api.read(from(&fixture.id, since)).await.unwrap();
        let first = chunks
            .iter()
            .find(|of| of.read_time == chunk.read_time)
            .unwrap();
        assert_eq!(answer.chunks[0].offset, first.offset);
    }
    let ends = [(0, 0), (i64::MAX, offset), (-5, 0)];
    for (seconds, expected) in ends {
        let since = Start::Since(Timestamp { seconds, nanos: 0 });
        let answer = api.read(from(&fixture.id, since)).await.unwrap();
        let first = answer.chunks.first().map_or(offset, |chunk| chunk.offset);
        assert_eq!(first, expected, "{seconds}");
    }
}

fn head_and_tail(head: Head, tail: Tail) -> Start {
    Start::HeadAndTail(HeadAndTail {
        head: Some(head),
        tail: Some(tail),
    })
}

/// O13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn head_and_tail_is_exact_at_the_limit_and_counts_what_is_omitted_beyond_it() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    for all in [0_usize, 1, 99, 100, 101, 250_000] {
        let id = api.start(daemon.script(&format!("bytes {all}"))).await.id;
        api.ended(&id).await;
        let view = head_and_tail(Head::HeadBytes(60), Tail::TailBytes(40));
        let answer = api.read(from(&id, view)).await.unwrap();
        assert_eq!(answer.next_offset, all as u64);
        let expected = pattern(all);
        let gaps: Vec<_> = answer.chunks.iter().filter_map(gap).collect();
        if all <= 100 {
            assert_eq!(bytes(&answer.chunks), expected, "{all}");
            continue;
        }
        let at = answer.chunks.iter().position(|chunk| gap(chunk).is_some());
        let (head, rest) = answer.chunks.split_at(at.unwrap());
        assert_eq!(bytes(head), expected[..60]);
        assert_eq!(bytes(&rest[1..]), expected[all - 40..]);
        assert_eq!(rest[0].offset, 60);
        assert_eq!((gaps.len(), gaps[0].length), (1, all as u64 - 100), "{all}");
        assert_eq!(gaps[0].cause(), OutputGapCause::Omitted);
        assert_eq!(gaps[0].lines, None);
    }
}

/// O13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn head_and_tail_by_lines_counts_the_omitted_lines() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let view = || head_and_tail(Head::HeadLines(2), Tail::TailLines(3));
    for (lines, omitted) in [
        (0, None),
        (4, None),
        (5, None),
        (6, Some(1)),
        (90_000, Some(89_995)),
    ] {
        let id = finished(&api, &format!("seq {lines}")).await;
        let answer = api.read(from(&id, view())).await.unwrap();
        let gap = answer.chunks.iter().find_map(gap);
        assert_eq!(gap.and_then(|gap| gap.lines), omitted, "{lines}");
        let shown = answer.chunks.iter().filter(|chunk| !is_gap(chunk));
        let shown: Vec<u8> = shown.flat_map(raw).copied().collect();
        let shown: Vec<_> = str::from_utf8(&shown)
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect();
        let all: Vec<_> = (1..=lines).map(|n| n.to_string()).collect();
        match omitted {
            None => assert_eq!(shown, all),
            Some(_) => assert_eq!(shown, [&all[..2], &all[lines - 3..]].concat()),
        }
    }
}

fn is_gap(chunk: &OutputChunk) -> bool {
    gap(chunk).is_some()
}

/// O5, O13
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn parts_that_are_measured_in_bytes_do_not_cut_a_character() {
    let daemon = Daemon::start().await;
    let api = daemon.api().await;
    let id = finished(
        &api,
        "for i in 1 2 3 4 5 6 7 8 9 10; do printf 'é€🐕'; done",
    )
    .await;
    for part in 0..40_u32 {
        let request = ReadOutputRequest {
            view: OutputView::Text.into(),
            ..from(
                &id,
                head_and_tail(Head::HeadBytes(part), Tail::TailBytes(part)),
            )
        };
        let answer = api.read(request).await.unwrap();
        let shown: Vec<_> = answer
            .chunks
            .iter()
            .filter(|chunk| !is_gap(chunk))
            .collect();
        let size: usize = shown.iter().map(|chunk| text(chunk).len()).sum();
        let omitted: u64 = answer
            .chunks
            .iter()
            .filter_map(gap)
            .map(|gap| gap.length)
            .sum();
        assert_eq!(size as u64 + omitted, 90, "{part}");
        let whole: String = shown.iter().map(|chunk| text(chunk)).collect();
        assert!(!whole.contains('\u{FFFD}'), "{part}: {whole}");
    }
}
