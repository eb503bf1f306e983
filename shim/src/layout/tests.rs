use std::vec::Vec;

use proptest::prelude::*;

use super::*;
use crate::log::BLOCKS_START;

/// The blocks of a file, without its header page, written as a shim does.
struct File {
    bytes: Vec<u8>,
    log: Log,
}

/// Output that was read back: the offset of its first byte, and the bytes.
type Run = (u64, Vec<u8>);

impl File {
    fn new(bound: Bound) -> Self {
        Self {
            bytes: Vec::new(),
            log: Log::new(bound),
        }
    }

    /// Writes bytes that follow from their offset; returns the number of pieces.
    fn append(&mut self, stream: Stream, mut len: usize) -> usize {
        let mut pieces = 0;
        while len > 0 {
            let Some(piece) = self.log.piece(stream, Stamp::default(), len) else {
                break;
            };
            self.write(&piece);
            len -= piece.output();
            pieces += 1;
        }
        pieces
    }

    fn write(&mut self, piece: &Piece) {
        self.put(piece, usize::MAX);
        if piece.surface() == Surface::Used {
            let (tag, at) = piece.seal();
            self.bytes[(at - BLOCKS_START) as usize] = tag;
        }
        self.log.advance(piece);
    }

    /// Writes a piece, or its first bytes, without its seal.
    fn put(&mut self, piece: &Piece, most: usize) {
        let body: Vec<u8> = (0..piece.output() as u64)
            .map(|at| content(self.log.offset() + at))
            .collect();
        let mut bytes = [piece.head().as_bytes(), &body, piece.foot()].concat();
        bytes.truncate(most);
        let at = (piece.position() - BLOCKS_START) as usize;
        if piece.surface() == Surface::Fresh {
            assert!(at >= self.bytes.len(), "nothing is overwritten");
        }
        let end = at + bytes.len();
        self.bytes.resize(self.bytes.len().max(end), 0);
        self.bytes[at..end].copy_from_slice(&bytes);
    }

    /// Reads every frame by the format alone, in the order of offsets, joined where they follow one
    /// another.
    fn read(&self) -> Vec<Run> {
        let mut blocks: Vec<Run> = self.bytes.chunks(BLOCK_SIZE).filter_map(frames).collect();
        blocks.sort();
        let mut runs: Vec<Run> = Vec::new();
        for (offset, bytes) in blocks {
            match runs.last_mut() {
                Some((first, run)) if *first + run.len() as u64 == offset => run.extend(bytes),
                Some(_) | None => runs.push((offset, bytes)),
            }
        }
        for (offset, run) in &runs {
            let expected = |(at, byte): (usize, &u8)| *byte == content(offset + at as u64);
            assert!(run.iter().enumerate().all(expected), "run at {offset}");
        }
        runs
    }

    /// Takes a range of blocks out of the file.
    fn remove(&mut self, range: Blocks) {
        let at = |block: u64| (block as usize * BLOCK_SIZE).min(self.bytes.len());
        let (from, to) = (at(range.from), at(range.to));
        self.bytes.drain(from..to);
        self.log.removed(range);
    }
}

fn content(offset: u64) -> u8 {
    (offset * 31 % 251) as u8
}

fn frames(block: &[u8]) -> Option<Run> {
    let header = BlockHeader::decode(block.first_chunk()?)?;
    let mut rest = &block[BLOCK_HEADER..];
    let mut bytes = Vec::new();
    while let Some((head, body)) = rest.split_at_checked(FRAME_HEADER) {
        let Some(frame) = FrameHeader::decode(head.try_into().expect("whole")) else {
            break;
        };
        let (data, later) = body.split_at(frame.len as usize);
        bytes.extend_from_slice(data);
        rest = later;
    }
    Some((header.first_offset, bytes))
}

fn ring(blocks: u64, head_bytes: u64) -> Bound {
    Bound {
        blocks,
        total: None,
        head_bytes,
    }
}

#[test]
fn appended_output_is_read_back_in_order() {
    for step in [1, 19, 20, 21, 100, 4096, 65_471, 65_492, 65_536] {
        let mut file = File::new(Bound::NONE);
        while file.log.offset() < 300_000 {
            assert!(file.append(Stream::Stdout, step) <= 3, "{step}");
        }
        let [(0, run)] = &file.read()[..] else {
            panic!("one run, by {step}");
        };
        assert_eq!(run.len() as u64, file.log.offset(), "by {step}");
    }
}

#[test]
fn a_block_without_room_for_a_byte_is_padded() {
    for room in 0..=FRAME_HEADER {
        let mut file = File::new(Bound::NONE);
        let first = BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER - room;
        file.append(Stream::Stdout, first);
        file.append(Stream::Stderr, 1);
        let end = block_position(1) + (BLOCK_HEADER + FRAME_HEADER + 1) as u64;
        assert_eq!(file.log.position(), end, "room of {room}");
        assert_eq!(file.read()[0].1.len(), first + 1);
    }
}

#[test]
fn a_piece_knows_its_size() {
    let mut log = Log::new(ring(3, 1));
    for len in [1, 70_000, 65_492, 3, 65_466, 70_000, 9, 70_000, 65_000, 492] {
        let piece = log
            .piece(Stream::Stderr, Stamp::default(), len)
            .expect("no total");
        assert_eq!(piece.size(), piece.head().as_bytes().len() + piece.output());
        log.advance(&piece);
    }
}

#[test]
fn a_file_within_a_limit_leaves_room_for_the_file_system() {
    for bytes in [256 << 10, 1 << 20, 64 << 20, (64 << 20) + 12_287, 1 << 40] {
        let blocks = blocks_within(bytes);
        assert!(block_position(blocks) + 8192 <= bytes, "{bytes}");
        assert!(block_position(blocks + 1) + 8192 > bytes, "{bytes}");
    }
    assert_eq!(blocks_within(0), MIN_BLOCKS);
}

/// O8
#[test]
fn a_total_ends_the_output() {
    let bound = Bound {
        blocks: u64::MAX,
        total: Some(3),
        head_bytes: 0,
    };
    let mut file = File::new(bound);
    for _ in 0..100 {
        file.append(Stream::Stdout, 10_000);
    }
    assert_eq!(file.bytes.len(), 3 * BLOCK_SIZE);
    assert!(
        file.log
            .piece(Stream::Stdout, Stamp::default(), 1)
            .is_none()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// O8, O17
    #[test]
    fn beyond_the_bound_the_head_and_the_latest_output_are_kept(
        blocks in MIN_BLOCKS..12,
        head_bytes in 0u64..400_000,
        steps in prop::collection::vec(1usize..70_000, 1..50),
    ) {
        let mut file = File::new(ring(blocks, head_bytes));
        for step in steps {
            file.append(Stream::Stdout, step);
            prop_assert!(file.bytes.len() as u64 <= blocks * BLOCK_SIZE as u64);
            prop_assert!(file.log.size() >= BLOCKS_START + file.bytes.len() as u64);
        }
        let (runs, end) = (file.read(), file.log.offset());
        let (first, last) = (&runs[0], &runs[runs.len() - 1]);
        prop_assert_eq!(last.0 + last.1.len() as u64, end);
        prop_assert!(runs.len() <= 2, "one gap");
        if runs.len() == 2 {
            let payload = (BLOCK_SIZE - BLOCK_HEADER) as u64;
            let most = (blocks - 2) * (payload - 100 * FRAME_HEADER as u64);
            prop_assert!(first.0 > 0 || first.1.len() as u64 >= head_bytes.min(most));
            prop_assert_eq!(first.1.len() as u64, file.log.head_end());
            // All but the block that is being overwritten.
            let ring = blocks - file.log.head() - 1;
            prop_assert!(last.1.len() as u64 >= ring * (payload - 100 * FRAME_HEADER as u64));
        }
    }

    /// O17: a shim that is killed in the middle of a write costs that write and the oldest block at most.
    #[test]
    fn a_piece_that_is_written_in_part_is_not_read(
        blocks in MIN_BLOCKS..6,
        steps in prop::collection::vec(1usize..70_000, 10..40),
        len in 1usize..70_000,
        written in 0usize..70_000,
    ) {
        let mut file = File::new(ring(blocks, 1));
        for step in steps {
            file.append(Stream::Stdout, step);
        }
        let piece = file.log.piece(Stream::Stdout, Stamp::default(), len).expect("no total");
        prop_assume!(piece.surface() == Surface::Used);
        let before = file.read();
        // The first page of a block is written at once.
        let least = piece.head().as_bytes().len();
        file.put(&piece, written.max(least));
        let after = file.read();
        let end = |runs: &[Run]| runs.last().map_or(0, |(at, run)| at + run.len() as u64);
        prop_assert_eq!(end(&after), end(&before));
        prop_assert_eq!(&after[0].0, &before[0].0);
    }

    /// O18
    #[test]
    fn a_lower_bound_takes_the_oldest_output(
        blocks in 5u64..14,
        lower in MIN_BLOCKS..13,
        head_bytes in 0u64..400_000,
        before in prop::collection::vec(1usize..70_000, 1..40),
        after in prop::collection::vec(1usize..70_000, 0..20),
    ) {
        let mut file = File::new(ring(blocks, head_bytes));
        for step in before {
            file.append(Stream::Stdout, step);
        }
        let (runs, end) = (file.read(), file.log.offset());
        let Removal { ranges, head } = file.log.lower_bound(lower);
        prop_assert!(ranges[1].to <= ranges[0].from || ranges[0].is_empty());
        let head_end = match head < file.log.head() {
            true => frames(&file.bytes[head as usize * BLOCK_SIZE..]).expect("a block").0,
            false => file.log.head_end(),
        };
        for range in ranges {
            file.remove(range);
        }
        file.log.set_head(head, head_end);
        prop_assert!(file.bytes.len() as u64 <= lower.min(blocks) * BLOCK_SIZE as u64);
        let kept = file.read();
        let last = kept.last().cloned().unwrap_or_default();
        prop_assert_eq!(last.0 + last.1.len() as u64, end, "the newest bytes stay");
        prop_assert!(kept.len() <= 2);
        prop_assert!(runs.is_empty() || kept[0].0 == runs[0].0);
        for step in after {
            file.append(Stream::Stdout, step);
            prop_assert!(file.bytes.len() as u64 <= lower.min(blocks) * BLOCK_SIZE as u64);
        }
        let (runs, end) = (file.read(), file.log.offset());
        let last = runs.last().cloned().unwrap_or_default();
        prop_assert_eq!(last.0 + last.1.len() as u64, end);
        prop_assert!(runs.len() <= 2);
    }

    /// O18
    #[test]
    fn a_lower_bound_keeps_the_newest_output_of_a_file_that_is_all_head(steps in 4usize..6) {
        let mut file = File::new(ring(8, 400_000));
        for _ in 0..steps {
            file.append(Stream::Stdout, BLOCK_SIZE);
        }
        let end = file.log.offset();
        let Removal { ranges, head } = file.log.lower_bound(3);
        let (head_end, _) = frames(&file.bytes[head as usize * BLOCK_SIZE..]).expect("a block");
        for range in ranges {
            file.remove(range);
        }
        file.log.set_head(head, head_end);
        let kept = file.read();
        let last = kept.last().cloned().unwrap_or_default();
        prop_assert_eq!(last.0 + last.1.len() as u64, end);
    }

    /// O14
    #[test]
    fn a_file_that_cannot_grow_goes_on_with_what_it_has(
        refused in 2u64..8,
        head_bytes in 0u64..1_000_000,
        steps in prop::collection::vec(1usize..70_000, 10..40),
    ) {
        let mut file = File::new(ring(1000, head_bytes));
        for mut step in steps {
            while step > 0 {
                let next = file.log.piece(Stream::Stdout, Stamp::default(), step);
                let piece = next.expect("no total");
                let end = piece.position() + piece.size() as u64;
                if piece.surface() == Surface::Fresh && end > block_position(refused) {
                    let head = file.log.head_of_full_file().expect("enough blocks");
                    let first = frames(&file.bytes[head as usize * BLOCK_SIZE..]);
                    file.log.set_head(head, first.expect("a block").0);
                    file.log.wrap();
                    continue;
                }
                file.write(&piece);
                step -= piece.output();
            }
        }
        prop_assert!(file.bytes.len() as u64 <= refused * BLOCK_SIZE as u64);
        let (runs, end) = (file.read(), file.log.offset());
        let last = runs.last().cloned().unwrap_or_default();
        prop_assert_eq!(last.0 + last.1.len() as u64, end);
        prop_assert!(runs.len() <= 2, "{} runs", runs.len());
    }
}

#[test]
fn too_few_blocks_cannot_become_a_ring() {
    let mut file = File::new(ring(1000, 0));
    assert_eq!(file.log.head_of_full_file(), None);
    file.append(Stream::Stdout, 1000);
    assert_eq!(file.log.head_of_full_file(), None);
    file.append(Stream::Stdout, BLOCK_SIZE);
    assert_eq!(file.log.head_of_full_file(), Some(0));
}
