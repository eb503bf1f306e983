//! Output in memory: the file in which a task's output may begin its life, on a file system that has
//! no disk.
//!
//! It has the layout of a task file, at the same positions, without the header page's records: these
//! are always on disk. Which of the two files has the output is never in doubt: **if there is a
//! memory file, it is the output; else the task file is.** Whoever moves output to the disk copies
//! it whole before the memory file loses its name, and writes to one of the two only; so that
//! whoever reads, and whoever dies half-way, loses nothing and sees nothing twice.

use crate::layout::Tail;

/// How much output may be in memory.
pub const MEMORY_LIMIT: u64 = 1024 * 1024;
/// How large the file may be for that. Lines of less than 64 bytes fill it before there is so much output.
pub const MEMORY_FILE_LIMIT: u64 = MEMORY_LIMIT + 320 * 1024;

/// Whether so many bytes more may be in memory, behind this tail.
pub fn has_room(tail: &Tail, mut len: usize) -> bool {
    if tail.offset().saturating_add(len as u64) > MEMORY_LIMIT {
        return false;
    }
    let mut tail = *tail;
    while len > 0 {
        // The stream and the time make no difference to the size.
        let piece = tail.piece(crate::log::Stream::Stdout, 0, len);
        tail = tail.advance(&piece);
        len -= piece.output();
    }
    tail.position() <= MEMORY_FILE_LIMIT
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stream;

    fn fill(step: usize) -> Tail {
        let mut tail = Tail::EMPTY;
        while has_room(&tail, step) {
            let mut left = step;
            while left > 0 {
                let piece = tail.piece(Stream::Stdout, 0, left);
                tail = tail.advance(&piece);
                left -= piece.output();
            }
        }
        tail
    }

    /// F10
    #[test]
    fn exactly_so_much_output_stays_in_memory() {
        for step in [64, 128, 1024, 4096, 65_536, 1 << 20] {
            assert_eq!(fill(step).offset(), MEMORY_LIMIT, "by {step}");
        }
    }

    /// F10
    #[test]
    fn however_short_the_writes_the_file_has_its_limit() {
        for step in [1, 2, 7, 16, 63, 65, 1000, 65_535] {
            let tail = fill(step);
            assert!(tail.position() <= MEMORY_FILE_LIMIT, "by {step}");
            assert!(tail.offset() <= MEMORY_LIMIT, "by {step}");
        }
        assert!(fill(1).offset() > 64 * 1024, "some of it in any case");
    }

    #[test]
    fn nothing_more_always_has_room() {
        assert!(has_room(&Tail::EMPTY, 0));
        assert!(!has_room(&Tail::EMPTY, usize::MAX));
    }
}
