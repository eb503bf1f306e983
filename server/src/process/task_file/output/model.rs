//! A file that is written as a shim writes it, for tests and fuzzing.

use std::{fs::File, os::unix::fs::FileExt};

use heeler_shim::{
    layout::{Blocks, Bound, Log, Piece, Surface},
    log::{BLOCKS_START, Stream},
    record::{Limit, LimitCause, OutputState, Ring},
    stamp::Stamp,
};

/// A task file and its shim's view of it.
#[derive(Debug)]
pub(in crate::process::task_file) struct ModelFile {
    pub(in crate::process::task_file) file: File,
    pub(in crate::process::task_file) log: Log,
    pub(in crate::process::task_file) state: OutputState,
}

impl ModelFile {
    pub(in crate::process::task_file) fn new(file: File, bound: Bound) -> Self {
        file.set_len(BLOCKS_START).expect("room");
        Self {
            file,
            log: Log::new(bound),
            state: OutputState::default(),
        }
    }

    /// Appends bytes that follow from their offsets, see [`content`].
    pub(in crate::process::task_file) fn append(
        &mut self,
        stream: Stream,
        time: Stamp,
        len: usize,
    ) {
        let mut left = len;
        while left > 0 {
            let Some(piece) = self.log.piece(stream, time, left) else {
                self.state.dropped += left as u64;
                self.state.last_dropped = time;
                return self.record();
            };
            if piece.overwritten().is_some() && self.state.ring.is_none() {
                self.begin_ring(time);
            }
            self.put(&piece);
            self.log.advance(&piece);
            left -= piece.output();
        }
    }

    /// Writes the next version of the state.
    pub(in crate::process::task_file) fn record(&mut self) {
        self.state.number += 1;
        self.write(&self.state.encode(), self.state.position());
    }

    fn begin_ring(&mut self, time: Stamp) {
        self.state.limit = Some(Limit {
            cause: LimitCause::Policy,
            time,
            offset: self.log.head_end(),
            kills: false,
        });
        self.state.ring = Some(Ring {
            head: self.log.head(),
            removed: Blocks::default(),
            end: u64::MAX,
        });
        self.record();
    }

    fn put(&self, piece: &Piece) {
        let from = self.log.offset();
        let body: Vec<u8> = (from..from + piece.output() as u64).map(content).collect();
        let bytes = [piece.head().as_bytes(), &body, piece.foot()].concat();
        self.write(&bytes, piece.position());
        if piece.surface() == Surface::Used {
            let (seal, position) = piece.seal();
            self.write(&[seal], position);
        }
    }

    fn write(&self, bytes: &[u8], position: u64) {
        self.file.write_all_at(bytes, position).expect("room");
    }
}

/// The byte at an offset.
pub(in crate::process::task_file) fn content(offset: u64) -> u8 {
    (offset.wrapping_mul(31) % 251) as u8
}
