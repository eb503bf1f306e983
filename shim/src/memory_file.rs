//! The memory file: the file on tmpfs in which a foreground task's output begins.
//!
//! It has the layout of a task file, at the same positions, without the records, which are always on
//! disk. **If a memory file exists, it is the task's output; else the task file is.** Output moves to
//! disk by a complete copy before the memory file is unlinked, and only one of the two files is written
//! at any time. So a reader, and a crash at any point, neither loses bytes nor sees them twice.
//!
//! The shim holds an exclusive `flock` on the memory file while it writes it.

use crate::{layout::Tail, log::Stream, stamp::Stamp};

/// The most output bytes that stay in memory.
pub const MEMORY_LIMIT: u64 = 1024 * 1024;
/// The largest memory file. Writes of less than 64 bytes reach this limit before [`MEMORY_LIMIT`].
pub const MEMORY_FILE_LIMIT: u64 = MEMORY_LIMIT + 336 * 1024;

/// Returns whether `len` more bytes may be written to a memory file behind this tail.
pub fn has_room(tail: &Tail, mut len: usize) -> bool {
    if tail.offset().saturating_add(len as u64) > MEMORY_LIMIT {
        return false;
    }
    let mut tail = *tail;
    while len > 0 {
        // Stream and time do not change the size.
        let piece = tail.piece(Stream::Stdout, Stamp::default(), len);
        tail = tail.advance(&piece);
        len -= piece.output();
    }
    tail.position() <= MEMORY_FILE_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(step: usize) -> Tail {
        let mut tail = Tail::EMPTY;
        while has_room(&tail, step) {
            let mut left = step;
            while left > 0 {
                let piece = tail.piece(Stream::Stdout, Stamp::default(), left);
                tail = tail.advance(&piece);
                left -= piece.output();
            }
        }
        tail
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
            let tail = fill(step);
            assert!(tail.position() <= MEMORY_FILE_LIMIT, "by {step}");
            assert!(tail.offset() <= MEMORY_LIMIT, "by {step}");
        }
        assert!(fill(1).offset() > 64 * 1024, "one-byte writes");
    }

    #[test]
    fn an_empty_write_always_has_room() {
        assert!(has_room(&Tail::EMPTY, 0));
        assert!(!has_room(&Tail::EMPTY, usize::MAX));
    }
}
