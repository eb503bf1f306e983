//! The memory file: the file on tmpfs in which a foreground task's output begins.
//!
//! It has the layout of a task file, at the same positions, without the records, which are always on
//! disk. **If a memory file exists, it is the task's output; else the task file is.** Output moves to
//! disk by a complete copy before the memory file is unlinked, and only one of the two files is written
//! at any time. So a reader, and a crash at any point, neither loses bytes nor sees them twice.
//!
//! The shim holds an exclusive `flock` on the memory file while it writes it.

use crate::{
    layout::{Log, Surface},
    log::Stream,
    stamp::Stamp,
};

/// The most output bytes that stay in memory.
pub const MEMORY_LIMIT: u64 = 1024 * 1024;
/// The largest memory file. Writes of less than 64 bytes reach this limit before [`MEMORY_LIMIT`].
pub const MEMORY_FILE_LIMIT: u64 = MEMORY_LIMIT + 336 * 1024;

/// Returns whether `len` more bytes may be written to a memory file behind this log. Bytes that overwrite
/// older ones, or are dropped, need no room.
pub fn has_room(log: &Log, mut len: usize) -> bool {
    let mut log = *log;
    while len > 0 {
        // Stream and time do not change the size.
        let Some(piece) = log.piece(Stream::Stdout, Stamp::default(), len) else {
            return true;
        };
        log.advance(&piece);
        let grows = piece.surface() == Surface::Fresh;
        if grows && (log.offset() > MEMORY_LIMIT || log.position() > MEMORY_FILE_LIMIT) {
            return false;
        }
        len -= piece.output();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Bound;

    fn append(log: &mut Log, mut len: usize) {
        while len > 0 {
            let piece = log.piece(Stream::Stdout, Stamp::default(), len);
            let piece = piece.expect("no total");
            log.advance(&piece);
            len -= piece.output();
        }
    }

    fn fill(step: usize) -> Log {
        let mut log = Log::new(Bound::NONE);
        while has_room(&log, step) {
            append(&mut log, step);
        }
        log
    }

    /// F10
    #[test]
    fn output_stays_in_memory_up_to_exactly_the_limit() {
        for step in [64, 128, 1024, 4096, 65_536, 1 << 20] {
            assert_eq!(fill(step).offset(), MEMORY_LIMIT, "by {step}");
        }
    }

    /// F10
    #[test]
    fn short_writes_do_not_exceed_the_file_limit() {
        for step in [1, 2, 7, 16, 63, 65, 1000, 65_535] {
            let log = fill(step);
            assert!(log.position() <= MEMORY_FILE_LIMIT, "by {step}");
            assert!(log.offset() <= MEMORY_LIMIT, "by {step}");
        }
        assert!(fill(1).offset() > 64 * 1024, "one-byte writes");
    }

    #[test]
    fn an_empty_write_always_has_room() {
        assert!(has_room(&Log::new(Bound::NONE), 0));
        assert!(!has_room(&Log::new(Bound::NONE), usize::MAX));
    }

    /// O8, F10: output with a limit below that of the memory file stays in memory for good.
    #[test]
    fn output_that_overwrites_itself_always_has_room() {
        let bound = Bound {
            blocks: 3,
            total: None,
            head_bytes: 1,
        };
        let mut log = Log::new(bound);
        for _ in 0..1000 {
            assert!(has_room(&log, 65_536));
            append(&mut log, 65_536);
        }
    }
}
