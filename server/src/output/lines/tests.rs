use proptest::prelude::*;

use super::*;
use crate::task::GapCause;

/// The size of output that a line can span in these tests.
const SPAN: u64 = 8;

type Written = (Stream, Vec<u8>);

fn lines_at(offset: u64) -> Lines {
    Lines {
        longest: SPAN,
        ..Lines::from(offset)
    }
}

/// The chunks between two offsets.
fn log(written: &[Written], from: u64, to: u64) -> Vec<Chunk> {
    let mut offset = 0;
    let mut chunks = Vec::new();
    for (stream, data) in written {
        let at = |limit: u64| (limit.clamp(offset, offset + data.len() as u64) - offset) as usize;
        let part = at(from)..at(to);
        if !part.is_empty() {
            chunks.push(Chunk {
                offset: offset + part.start as u64,
                stream: *stream,
                at: Timestamp(offset),
                data: data[part].to_vec(),
            });
        }
        offset += data.len() as u64;
    }
    chunks
}

fn size(written: &[Written]) -> u64 {
    written.iter().map(|(_, data)| data.len() as u64).sum()
}

/// The state at a cursor, from the output before it.
fn resume(written: &[Written], cursor: u64) -> Lines {
    let from = cursor.saturating_sub(2 * SPAN);
    let mut lines = lines_at(from);
    for chunk in log(written, from, cursor) {
        let _ = lines.feed(&chunk, &mut |_| ControlFlow::Continue(()));
    }
    lines
}

/// All lines, read by readers that stop after `stops` lines each and forget everything.
fn read(written: &[Written], stops: &[usize]) -> Vec<(Stream, Vec<u8>)> {
    let (end, mut cursor, mut read) = (size(written), 0, Vec::new());
    let mut stops = stops.iter().copied().cycle();
    while cursor < end {
        let mut left = stops.next().unwrap_or(1);
        let mut lines = resume(written, cursor);
        let mut sink = |line: Line<'_>| {
            read.push((line.stream, line.bytes.to_vec()));
            left = left.saturating_sub(1);
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        };
        for chunk in log(written, cursor, end) {
            if lines.feed(&chunk, &mut sink).is_break() {
                break;
            }
        }
        cursor = lines.cursor();
        if cursor == end {
            let _ = lines.finish(&mut sink);
        }
    }
    read
}

fn of_stream(lines: &[Written], stream: Stream) -> Vec<u8> {
    let of = lines.iter().filter(|(of, _)| *of == stream);
    of.flat_map(|(_, data)| data.clone()).collect()
}

/// O4
#[test]
fn each_stream_has_lines_of_its_own_in_the_order_of_their_ends() {
    let written = [
        (Stream::Stdout, b"ab".to_vec()),
        (Stream::Stderr, b"x\n".to_vec()),
        (Stream::Stdout, b"c\nd".to_vec()),
    ];
    let expected = [
        (Stream::Stderr, b"x\n".to_vec()),
        (Stream::Stdout, b"abc\n".to_vec()),
        (Stream::Stdout, b"d".to_vec()),
    ];
    assert_eq!(read(&written, &[usize::MAX]), expected);
    assert_eq!(read(&written, &[1]), expected);
}

/// O12
#[test]
fn an_open_line_of_one_stream_does_not_delay_the_other() {
    let written = [
        (Stream::Stdout, b"wait".to_vec()),
        (Stream::Stderr, b"1\n2\n3\n4\n5\n".to_vec()),
        (Stream::Stdout, b"ing\n".to_vec()),
    ];
    let read = read(&written, &[1]);
    let texts: Vec<_> = read.iter().map(|(_, line)| line.as_slice()).collect();
    let expected: [&[u8]; 7] = [b"1\n", b"2\n", b"wait", b"3\n", b"4\n", b"5\n", b"ing\n"];
    assert_eq!(texts, expected, "a line that spans too much is split");
}

/// O5
#[test]
fn a_long_line_is_not_split_inside_a_character() {
    let line = "é€🐕".repeat(10);
    for cut in 1..line.len() {
        let (first, second) = line.as_bytes().split_at(cut);
        let written = [
            (Stream::Stdout, first.to_vec()),
            (Stream::Stdout, second.to_vec()),
        ];
        for (_, piece) in read(&written, &[1]) {
            assert!(str::from_utf8(&piece).is_ok(), "{cut}: {piece:?}");
        }
    }
}

/// O8
#[test]
fn a_gap_ends_the_open_lines() {
    let mut lines = lines_at(0);
    let mut read = Vec::new();
    let mut sink = |line: Line<'_>| {
        read.push((line.bytes.to_vec(), line.cursor));
        ControlFlow::Continue(())
    };
    let written = [(Stream::Stdout, b"begin".to_vec())];
    for chunk in log(&written, 0, 5) {
        let _ = lines.feed(&chunk, &mut sink);
    }
    let gap = Gap {
        offset: 5,
        length: 100,
        cause: GapCause::Lost,
        lines: None,
    };
    let _ = lines.gap(&gap, &mut sink);
    assert_eq!(lines.cursor(), 105);
    assert_eq!(lines.size(), 0);
    assert_eq!(read, [(b"begin".to_vec(), 105)]);
}

fn written() -> impl Strategy<Value = Vec<Written>> {
    let stream = prop::sample::select(&[Stream::Stdout, Stream::Stderr][..]);
    let bytes = prop::collection::vec(prop::sample::select(&b"ab\n\xC3\xA9"[..]), 1..12);
    prop::collection::vec((stream, bytes), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// O2, O12
    #[test]
    fn readers_that_forget_everything_lose_and_repeat_nothing(
        written in written(),
        stops in prop::collection::vec(1_usize..4, 1..5),
    ) {
        let read = read(&written, &stops);
        for stream in [Stream::Stdout, Stream::Stderr] {
            prop_assert_eq!(of_stream(&read, stream), of_stream(&written, stream));
        }
    }

    /// O12
    #[test]
    fn short_lines_are_whole_whatever_the_chunks(
        written in written(),
        stops in prop::collection::vec(1_usize..4, 1..5),
    ) {
        let only = |(_, data): &Written| (Stream::Stdout, data.clone());
        let written: Vec<Written> = written.iter().map(only).collect();
        let read = read(&written, &stops);
        let all = of_stream(&written, Stream::Stdout);
        let whole = all.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() as u64 <= SPAN);
        let mut pieces = read.iter().map(|(_, line)| line.as_slice());
        for line in whole {
            prop_assert!(pieces.any(|piece| piece == line), "{:?} is not in {:?}", line, read);
        }
    }

    /// O9
    #[test]
    fn open_lines_take_bounded_memory(written in written()) {
        let mut lines = lines_at(0);
        for chunk in log(&written, 0, size(&written)) {
            let _ = lines.feed(&chunk, &mut |_| ControlFlow::Continue(()));
            prop_assert!(lines.size() as u64 <= 2 * SPAN);
        }
    }
}
