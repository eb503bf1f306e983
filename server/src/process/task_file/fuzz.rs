//! A task file under arbitrary bytes. A task runs as the server's user and can write its own file.

use std::{fs::File, os::unix::fs::FileExt};

use heeler_shim::{
    layout::{Blocks, Bound},
    log::{BLOCK_SIZE, BLOCKS_START, BlockHeader, Stream as ShimStream},
    record::{IDENTITY_SLOT, Ring, SLOT},
    stamp::Stamp,
};

use super::{
    TaskFile,
    output::model::{ModelFile, content},
};
use crate::{fuzz::Input, task::Item};

/// The most output that a fuzzed file begins with.
const LARGEST: u64 = 8 * BLOCK_SIZE as u64;

/// A file that a shim has written, then damaged: undamaged output is read exactly, with its gaps; damaged
/// output is bounded and in order.
pub fn task_file(bytes: &[u8]) {
    let mut input = Input(bytes);
    let file = tempfile::tempfile_in("/dev/shm").expect("a file system in memory");
    let mut model = ModelFile::new(file, bound(&mut input));
    write_output(&mut model, &mut input);
    let damaged = damage(&mut model, &mut input);
    let (kept, dropped) = (model.log.offset(), model.state.dropped);
    let file = TaskFile {
        file: model.file,
        memory: None,
    };
    let records = file.records().expect("a readable file");
    let _ = (records.unreadable(), records.are_blank());
    let (offset, limit) = (any_offset(&mut input), usize::from(input.u16()));
    let reading = file.read(offset, limit).expect("a readable file");
    is_in_order(&reading.items, offset, limit);
    let tail = file.tail(limit).expect("a readable file");
    is_in_order(&tail.items, 0, limit);
    let last = file.last_output().expect("a readable file");
    file.gaps().expect("a readable file");
    if !damaged {
        let total = kept + dropped;
        assert_eq!((reading.end, last.end, tail.end), (total, total, total));
        is_what_was_written(&reading.items, offset, total, limit);
        is_what_was_written(&tail.items, kept.saturating_sub(limit as u64), total, limit);
    }
}

/// A bound under which some of the output rotates, or is dropped, or neither.
fn bound(input: &mut Input<'_>) -> Bound {
    let number = u64::from(input.byte() % 4);
    match input.byte() % 3 {
        0 => Bound::NONE,
        1 => Bound {
            blocks: 3 + number,
            total: None,
            head_bytes: u64::from(input.u16()),
        },
        _ => Bound {
            total: Some(number + 1),
            ..Bound::NONE
        },
    }
}

/// Appends output in pieces, as a shim does.
fn write_output(model: &mut ModelFile, input: &mut Input<'_>) {
    for number in 0..u64::from(input.byte() % 16) {
        let len = usize::from(input.u16()) * usize::from(input.byte() % 3);
        let stream = match input.byte() % 2 {
            0 => ShimStream::Stdout,
            _ => ShimStream::Stderr,
        };
        let stamp = Stamp {
            wall_micros: number,
            monotonic_micros: number,
        };
        if model.log.offset() + len as u64 <= LARGEST {
            model.append(stream, stamp, len);
        }
    }
}

/// Changes the file, with checksums that fit where there are any; returns whether output was changed.
fn damage(model: &mut ModelFile, input: &mut Input<'_>) -> bool {
    let mut output_changed = false;
    for _ in 0..input.byte() % 8 {
        let position = match input.byte() % 5 {
            // A record: its checksum covers the length that it names.
            0 => {
                output_changed |= write_record(&model.file, input);
                continue;
            }
            // The header of a block, which then begins at any offset.
            1 => {
                let block = u64::from(input.byte() % 4);
                let header = BlockHeader {
                    first_offset: any_offset(input),
                };
                let position = BLOCKS_START + block * BLOCK_SIZE as u64;
                let header = header.encode();
                model.file.write_all_at(&header, position).expect("room");
                output_changed = true;
                continue;
            }
            // A ring of any blocks.
            2 => {
                model.state.ring = Some(Ring {
                    head: any_offset(input),
                    removed: Blocks {
                        from: any_offset(input),
                        to: any_offset(input),
                    },
                    end: any_offset(input),
                });
                model.record();
                output_changed = true;
                continue;
            }
            3 => u64::from(input.u16()) * 5,
            _ => BLOCKS_START + u64::from(input.byte()),
        };
        // Identity, start and end do not matter to the output.
        output_changed |= position + 8 > 2560;
        let bytes = input.u64().to_le_bytes();
        model.file.write_all_at(&bytes, position).expect("room");
    }
    output_changed
}

/// Returns whether it is the record of the output's state.
fn write_record(file: &File, input: &mut Input<'_>) -> bool {
    let (position, size) = match u64::from(input.byte() % 6) {
        0 => (0, IDENTITY_SLOT),
        number => (IDENTITY_SLOT as u64 + (number - 1) * SLOT as u64, SLOT),
    };
    let mut slot = vec![0; size];
    file.read_exact_at(&mut slot, position)
        .expect("a header page");
    let bytes = input.bytes(160);
    slot[..bytes.len()].copy_from_slice(bytes);
    let len = usize::from(u16::from_le_bytes([slot[6], slot[7]])).min(size - 12);
    let sum = heeler_shim::checksum::crc32(&slot[..8 + len]);
    slot[size - 4..].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&slot, position).expect("room");
    position >= 2560
}

/// An offset near 0, near the end of all numbers, or anywhere.
fn any_offset(input: &mut Input<'_>) -> u64 {
    match input.byte() % 4 {
        0 => u64::from(input.u16()),
        1 => u64::MAX - u64::from(input.u16()),
        2 => u64::from(input.u16()) * 4,
        _ => input.u64(),
    }
}

fn is_in_order(items: &[Item], from: u64, limit: usize) {
    let (mut sum, mut at) = (0, from);
    for item in items {
        let (offset, len) = match item {
            Item::Chunk(chunk) => (chunk.offset, chunk.data.len()),
            Item::Gap(gap) => (gap.offset, 0),
        };
        assert!(offset >= at, "{offset} before {at}");
        sum += len;
        at = item.end();
    }
    assert!(sum <= limit, "{sum} bytes of {limit}");
}

fn is_what_was_written(items: &[Item], from: u64, total: u64, limit: usize) {
    let (mut sum, mut at) = (0, from);
    for item in items {
        match item {
            Item::Chunk(chunk) => {
                assert_eq!(chunk.offset, at);
                let expected: Vec<u8> = (at..item.end()).map(content).collect();
                assert!(chunk.data == expected, "bytes at {at}");
                sum += chunk.data.len();
            }
            Item::Gap(gap) => assert_eq!(gap.offset, at),
        }
        at = item.end();
    }
    assert!(at >= total || sum == limit, "{at} of {total}");
}
