//! Read marks: for each task, the offset up to which the client has been given its output.

use std::{collections::HashMap, ops::Range};

/// The most tasks that have a mark. Beyond it the oldest marks are dropped, and those outputs count as
/// unread again.
const MOST_MARKS: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct ReadMarks {
    marks: HashMap<String, Mark>,
    clock: u64,
}

#[derive(Debug)]
struct Mark {
    offset: u64,
    used: u64,
}

impl ReadMarks {
    pub(crate) fn get(&self, id: &str) -> u64 {
        self.marks.get(id).map_or(0, |mark| mark.offset)
    }

    /// Moves a mark to the end of a part that was read, if that begins at the mark or before it: what is between
    /// them is unread otherwise. A mark never moves back.
    pub(crate) fn add(&mut self, id: &str, part: Range<u64>) {
        let before = self.get(id);
        if part.start > before {
            return;
        }
        self.clock += 1;
        let offset = part.end.max(before);
        let used = self.clock;
        self.marks.insert(id.to_owned(), Mark { offset, used });
        if self.marks.len() > MOST_MARKS {
            let newer = self.clock - MOST_MARKS as u64 / 2;
            self.marks.retain(|_, mark| mark.used > newer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M3
    #[test]
    fn a_mark_only_moves_forward() {
        let mut marks = ReadMarks::default();
        marks.add("shell-a", 0..10);
        marks.add("shell-a", 2..4);
        assert_eq!((marks.get("shell-a"), marks.get("shell-b")), (10, 0));
    }

    /// M3
    #[test]
    fn a_part_behind_unread_output_does_not_move_the_mark() {
        let mut marks = ReadMarks::default();
        marks.add("shell-a", 1..10);
        assert_eq!(marks.get("shell-a"), 0);
        marks.add("shell-a", 0..1);
        marks.add("shell-a", 1..10);
        assert_eq!(marks.get("shell-a"), 10);
    }

    /// M3
    #[test]
    fn the_oldest_marks_make_room() {
        let mut marks = ReadMarks::default();
        for number in 0..=MOST_MARKS {
            marks.add(&number.to_string(), 0..1);
        }
        assert!(marks.marks.len() <= MOST_MARKS);
        assert_eq!(marks.get(&MOST_MARKS.to_string()), 1);
        assert_eq!(marks.get("0"), 0);
    }
}
