#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, Instant},
};

use heeler_shim::{
    layout::{Blocks as Range, Bound},
    log::{BLOCK_HEADER, BLOCKS_START, BlockHeader, FRAME_HEADER, Stream},
    record::Ring,
    stamp::Stamp,
};
use proptest::prelude::*;

use super::{
    model::{ModelFile, content},
    *,
};
use crate::task::{Monotonic, Timestamp};

fn stamp(micros: u64) -> Stamp {
    Stamp {
        wall_micros: 1000 + micros,
        monotonic_micros: micros,
    }
}

fn model(bound: Bound) -> ModelFile {
    ModelFile::new(tempfile::tempfile_in("/dev/shm").unwrap(), bound)
}

fn ring(blocks: u64, head_bytes: u64) -> Bound {
    Bound {
        blocks,
        total: None,
        head_bytes,
    }
}

fn append(model: &mut ModelFile, micros: u64, len: usize) {
    model.append(Stream::Stdout, stamp(micros), len);
}

fn output(model: &ModelFile) -> Output<'_> {
    Output {
        blocks: &model.file,
        records: &model.file,
    }
}

/// Checks that items follow one another from an offset on, and that every byte is the one that was written;
/// returns the gaps and the offset behind the last item.
fn check(items: &[Item], from: u64) -> (Vec<Gap>, u64) {
    let (mut at, mut gaps) = (from, Vec::new());
    for item in items {
        match item {
            Item::Chunk(chunk) => {
                assert_eq!(chunk.offset, at);
                let expected: Vec<u8> = (at..item.end()).map(content).collect();
                assert!(chunk.data == expected, "bytes at {at}");
            }
            Item::Gap(gap) => {
                assert_eq!(gap.offset, at);
                gaps.push(*gap);
            }
        }
        assert!(item.end() > at);
        at = item.end();
    }
    (gaps, at)
}

/// T6
#[test]
fn the_last_output_has_the_time_of_its_frame_by_both_clocks() {
    let mut model = model(Bound::NONE);
    assert_eq!(output(&model).last().unwrap(), LastOutput::default());
    for (micros, len) in [(1, 5), (2, 200_000), (3, 1), (4, BLOCK_SIZE)] {
        append(&mut model, micros, len);
        let last = output(&model).last().unwrap();
        assert_eq!(last.end, model.log.offset());
        let at = last.at.unwrap();
        assert_eq!(at.mono, Monotonic(micros));
        assert_eq!(at.wall, Timestamp(1000 + micros));
    }
}

/// R4
#[test]
fn a_block_that_claims_to_begin_at_the_end_of_all_numbers_has_no_frame() {
    let mut model = model(Bound::NONE);
    append(&mut model, 1, 6);
    let first_offset = u64::MAX - 3;
    let header = BlockHeader { first_offset };
    model
        .file
        .write_all_at(&header.encode(), BLOCKS_START)
        .unwrap();
    let output = output(&model);
    assert_eq!(output.last().unwrap().end, first_offset);
    let lost = Gap {
        offset: 0,
        length: first_offset,
        cause: GapCause::Lost,
        lines: None,
    };
    assert_eq!(output.read(0, 10).unwrap().items, [Item::Gap(lost)]);
    assert_eq!(output.read(first_offset, 10).unwrap().items, []);
}

/// T6: the shim was killed after it had begun a block.
#[test]
fn a_block_without_a_frame_does_not_hide_the_last_time() {
    let mut model = model(Bound::NONE);
    let full = BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER;
    append(&mut model, 7, full);
    let header = BlockHeader {
        first_offset: full as u64,
    };
    let end = model.file.metadata().unwrap().len();
    model.file.write_all_at(&header.encode(), end).unwrap();
    let last = output(&model).last().unwrap();
    assert_eq!(last.end, full as u64);
    assert_eq!(last.at.unwrap().mono, Monotonic(7));
}

/// O8: the oldest blocks are overwritten after a reader has looked up the end, and before it reads them.
#[test]
fn blocks_that_the_ring_reuses_during_a_read_are_not_told_as_lost() {
    let mut model = model(ring(8, 0));
    append(&mut model, 1, 20 * BLOCK_SIZE);
    let state = output(&model).state().unwrap();
    let file = model.file.try_clone().unwrap();
    let blocks = Blocks::new(&file, &state, 0).unwrap();
    let end = end(&blocks, &state).unwrap();
    let mut cursor = Cursor::at(0, end, &blocks, &state).unwrap();
    cursor.at = cursor.rotated;
    append(&mut model, 2, 3 * BLOCK_SIZE);
    let read = cursor.read(&blocks, 1 << 20, Attempt::Early).unwrap();
    assert!(read.is_none(), "to be read again: {read:?}");
    let reading = output(&model).read(0, 1 << 20).unwrap();
    let (gaps, _) = check(&reading.items, 0);
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].cause, GapCause::Rotated);
}

/// R4
#[test]
fn a_block_that_claims_to_be_newer_than_the_end_is_a_gap() {
    let mut model = model(Bound::NONE);
    append(&mut model, 1, 3 * BLOCK_SIZE);
    let end = model.log.offset();
    let first_offset = 2 * end;
    let header = BlockHeader { first_offset };
    let position = BLOCKS_START + BLOCK_SIZE as u64;
    model.file.write_all_at(&header.encode(), position).unwrap();
    // The read ends before the block, as if the shim had just overwritten it.
    let items = output(&model).read(0, 1 << 20).unwrap().items;
    let (gaps, at) = check(&items, 0);
    assert_eq!(gaps, []);
    let items = output(&model).read(at, 1 << 20).unwrap().items;
    let (gaps, at) = check(&items, at);
    assert_eq!((gaps.len(), at), (1, end));
    assert_eq!(gaps[0].cause, GapCause::Lost);
}

/// R4
#[test]
fn a_damaged_block_is_a_gap_of_its_own_length() {
    let mut model = model(Bound::NONE);
    append(&mut model, 1, 300_000);
    let position = BLOCKS_START + BLOCK_SIZE as u64;
    model.file.write_all_at(&[0; 8], position).unwrap();
    let reading = output(&model).read(0, 1 << 20).unwrap();
    let (gaps, end) = check(&reading.items, 0);
    let payload = (BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER) as u64;
    let lost = Gap {
        offset: payload,
        length: payload,
        cause: GapCause::Lost,
        lines: None,
    };
    assert_eq!((gaps, end), (vec![lost], 300_000));
}

/// O8, T4
#[test]
fn dropped_output_counts_and_is_a_gap_at_the_end() {
    let mut model = model(Bound {
        total: Some(2),
        ..Bound::NONE
    });
    for micros in 0..30 {
        append(&mut model, micros, 10_000);
    }
    let kept = model.log.offset();
    let truncated = |offset| Gap {
        offset,
        length: 300_000 - offset,
        cause: GapCause::Truncated,
        lines: None,
    };
    let output = output(&model);
    let last = output.last().unwrap();
    assert_eq!((last.end, last.at.unwrap().mono), (300_000, Monotonic(29)));
    assert_eq!(output.gaps().unwrap(), [truncated(kept)]);
    let tail = output.tail(100).unwrap();
    assert_eq!(tail.end, 300_000);
    assert_eq!(
        check(&tail.items, kept - 100),
        (vec![truncated(kept)], 300_000)
    );
    let inside = output.read(kept + 7, 100).unwrap();
    assert_eq!(inside.items, [Item::Gap(truncated(kept + 7))]);
    assert_eq!(output.read(300_000, 100).unwrap().items, []);
}

/// O14
#[test]
fn output_that_a_full_disk_has_cost_is_lost() {
    let mut model = model(ring(3, 1));
    append(&mut model, 1, 400_000);
    model.state.limit = None;
    model.record();
    let gaps = output(&model).gaps().unwrap();
    assert_eq!(gaps.len(), 1);
    assert_eq!(gaps[0].cause, GapCause::Lost);
}

/// O18: blocks 3 and 4 are being taken out of the file; blocks from 8 on count no more.
#[test]
fn removed_blocks_are_not_read() {
    let mut model = model(ring(100, 1));
    append(&mut model, 1, 700_000);
    model.state.limit = Some(heeler_shim::record::Limit {
        cause: heeler_shim::record::LimitCause::ServerBudget,
        time: stamp(1),
        offset: model.log.head_end(),
        kills: false,
    });
    model.state.ring = Some(Ring {
        head: 3,
        removed: Range { from: 3, to: 5 },
        end: 8,
    });
    model.record();
    let reading = output(&model).read(0, 1 << 20).unwrap();
    let (gaps, end) = check(&reading.items, 0);
    let payload = (BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER) as u64;
    let rotated = Gap {
        offset: 3 * payload,
        length: 2 * payload,
        cause: GapCause::Rotated,
        lines: None,
    };
    assert_eq!((&gaps[..], end), (&[rotated][..], 8 * payload));
    assert_eq!(output(&model).gaps().unwrap(), gaps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// O8, O17
    #[test]
    fn rotated_output_is_read_from_any_offset(
        blocks in 3u64..10,
        head_bytes in 0u64..300_000,
        steps in prop::collection::vec(1usize..70_000, 1..40),
        offset in 0u64..2_500_000,
        limit in 1usize..300_000,
    ) {
        let mut model = model(ring(blocks, head_bytes));
        for (micros, step) in steps.into_iter().enumerate() {
            append(&mut model, micros as u64, step);
        }
        let (output, total) = (output(&model), model.log.offset());
        let reading = output.read(offset, limit).unwrap();
        prop_assert_eq!(reading.end, total);
        let (gaps, end) = check(&reading.items, offset);
        let bytes: u64 = end - offset - gaps.iter().map(|gap| gap.length).sum::<u64>();
        prop_assert!(end == total.max(offset) || bytes == limit as u64);
        let all = output.gaps().unwrap();
        match (&gaps[..], &all[..]) {
            ([], _) => {}
            ([found], [whole]) => {
                prop_assert_eq!(found.cause, GapCause::Rotated);
                prop_assert_eq!(whole.offset, model.log.head_end());
                prop_assert_eq!(found.offset, whole.offset.max(offset));
                prop_assert_eq!(found.offset + found.length, whole.offset + whole.length);
            }
            (_, _) => prop_assert!(false, "{gaps:?} of {all:?}"),
        }
        let tail = output.tail(limit).unwrap();
        let first = total.saturating_sub(limit as u64);
        prop_assert_eq!(check(&tail.items, first).1, total);
    }
}

/// O17: what is read is what was written, however often the shim overwrites it meanwhile.
#[test]
fn readers_of_output_that_is_overwritten_meanwhile_see_whole_frames_in_order() {
    let mut model = model(ring(6, 100_000));
    append(&mut model, 0, 1_000_000);
    let (file, done) = (model.file.try_clone().unwrap(), AtomicBool::new(false));
    let until = Instant::now() + Duration::from_millis(1500);
    thread::scope(|scope| {
        for seed in 0..2u64 {
            let (file, done) = (&file, &done);
            scope.spawn(move || {
                let output = Output {
                    blocks: file,
                    records: file,
                };
                let (mut at, mut reads) = (0, 0u64);
                while !done.load(Ordering::Relaxed) {
                    let reading = output.read(at, 50_000).unwrap();
                    let (_, end) = check(&reading.items, at);
                    at = if reads % 7 == seed { 0 } else { end };
                    output.tail(4096).unwrap();
                    reads += 1;
                }
                assert!(reads > 10, "{reads} reads");
            });
        }
        while Instant::now() < until {
            append(&mut model, 1, 30_000);
        }
        done.store(true, Ordering::Relaxed);
    });
}
