//! A task file under arbitrary bytes. A task runs as the server's user and can write its own file.

use std::{fs::File, io::Write, os::unix::fs::FileExt};

use heeler_shim::{
    layout::Tail as Layout,
    log::{BLOCK_SIZE, BLOCKS_START, BlockHeader, Stream as ShimStream},
    record::SLOT,
    stamp::Stamp,
};

use super::TaskFile;
use crate::{fuzz::Input, task::Chunk};

/// The most output that a fuzzed file begins with.
const LARGEST: usize = 3 * BLOCK_SIZE;

/// A file that a shim has written, then damaged: undamaged output is read exactly, damaged output is
/// bounded and in order.
pub fn task_file(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut file = tempfile::tempfile_in("/dev/shm").expect("a file system in memory");
    file.write_all(&vec![0; BLOCKS_START as usize])
        .expect("room in memory");
    let written = write_output(&mut file, &mut input);
    let damaged = damage(&file, &mut input);
    let file = TaskFile { file, memory: None };
    let records = file.records().expect("a readable file");
    let _ = (records.unreadable(), records.are_blank());
    let (offset, limit) = (any_offset(&mut input), usize::from(input.u16()));
    let reading = file.read(offset, limit).expect("a readable file");
    is_in_order(&reading.chunks, offset, limit);
    let tail = file.tail(limit).expect("a readable file");
    is_in_order(&tail.chunks, 0, limit);
    let last = file.last_output().expect("a readable file");
    if !damaged {
        assert_eq!(
            (reading.end, last.end),
            (written.len() as u64, written.len() as u64)
        );
        let from = usize::try_from(offset).map_or(written.len(), |from| from.min(written.len()));
        let to = (from + limit).min(written.len());
        assert!(joined(&reading.chunks) == written[from..to]);
        assert!(joined(&tail.chunks) == written[written.len().saturating_sub(limit)..]);
    }
}

/// Appends output in pieces, as a shim does, and returns it.
fn write_output(file: &mut File, input: &mut Input<'_>) -> Vec<u8> {
    let (mut layout, mut written) = (Layout::EMPTY, Vec::new());
    for number in 0..u64::from(input.byte() % 16) {
        let mut left = usize::from(input.u16()) * usize::from(input.byte() % 3);
        let stream = match input.byte() % 2 {
            0 => ShimStream::Stdout,
            _ => ShimStream::Stderr,
        };
        while left > 0 && written.len() + left <= LARGEST {
            let stamp = Stamp {
                wall_micros: number,
                monotonic_micros: number,
            };
            let piece = layout.piece(stream, stamp, left);
            let bytes: Vec<u8> = (written.len()..written.len() + piece.output())
                .map(|at| (at % 251) as u8)
                .collect();
            file.write_all(piece.head().as_bytes()).expect("room");
            file.write_all(&bytes).expect("room");
            layout = layout.advance(&piece);
            left -= piece.output();
            written.extend(bytes);
        }
    }
    written
}

/// Changes the file, with checksums that fit where there are any; returns whether output was changed.
fn damage(file: &File, input: &mut Input<'_>) -> bool {
    let mut output_changed = false;
    for _ in 0..input.byte() % 8 {
        let position = match input.byte() % 4 {
            // A record: its checksum covers the length that it names.
            0 => {
                write_record(file, input);
                continue;
            }
            // The header of a block, which then begins at any offset.
            1 => {
                let block = u64::from(input.byte() % 4);
                let header = BlockHeader {
                    first_offset: any_offset(input),
                };
                let position = BLOCKS_START + block * BLOCK_SIZE as u64;
                file.write_all_at(&header.encode(), position).expect("room");
                output_changed = true;
                continue;
            }
            2 => u64::from(input.u16()) * 5,
            _ => BLOCKS_START + u64::from(input.byte()),
        };
        output_changed |= position + 8 > BLOCKS_START;
        file.write_all_at(&input.u64().to_le_bytes(), position)
            .expect("room");
    }
    output_changed
}

fn write_record(file: &File, input: &mut Input<'_>) {
    let position = u64::from(input.byte() % 4) * SLOT as u64;
    let mut slot = [0; SLOT];
    file.read_exact_at(&mut slot, position)
        .expect("a header page");
    let bytes = input.bytes(64);
    slot[..bytes.len()].copy_from_slice(bytes);
    let len = usize::from(u16::from_le_bytes([slot[6], slot[7]])).min(SLOT - 12);
    let sum = heeler_shim::checksum::crc32(&slot[..8 + len]);
    slot[SLOT - 4..].copy_from_slice(&sum.to_le_bytes());
    file.write_all_at(&slot, position).expect("room");
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

fn is_in_order(chunks: &[Chunk], from: u64, limit: usize) {
    let mut sum = 0;
    for chunk in chunks {
        assert!(chunk.offset >= from, "{} before {from}", chunk.offset);
        sum += chunk.data.len();
    }
    assert!(sum <= limit, "{sum} bytes of {limit}");
}

fn joined(chunks: &[Chunk]) -> Vec<u8> {
    chunks.iter().flat_map(|chunk| chunk.data.clone()).collect()
}
