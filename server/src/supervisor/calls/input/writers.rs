//! The writers of an input, and the note in which a shim keeps them.

use super::{InputHold, InputWrite};
use crate::process::shim::{NOTE_PARTS, NotePart, WRITER};

/// The longest id of a writer: half of a note. The shim compares the first half with that of a relay's client.
pub(crate) const LONGEST_WRITER: usize = WRITER;

/// The writers of an input. An empty id stands for none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::supervisor) struct Writers {
    /// The one that has the input.
    pub(super) present: String,
    /// The one from which it was taken last.
    pub(super) former: String,
}

impl Writers {
    /// Returns whether a write changes the input or its writer, unless it is refused for its offset.
    pub(in crate::supervisor) fn may_change(&self, write: &InputWrite) -> bool {
        let is_holder = write.writer == self.present;
        !write.changes_nothing() && (is_holder || write.hold == InputHold::TakeOver)
    }

    pub(in crate::supervisor) fn encode(&self) -> [NotePart; NOTE_PARTS] {
        let mut note = [NotePart::default(); NOTE_PARTS];
        let halves = note.as_flattened_mut().chunks_exact_mut(LONGEST_WRITER);
        for (half, writer) in halves.zip([&self.present, &self.former]) {
            // The edge refuses a longer one.
            let len = writer.len().min(LONGEST_WRITER);
            half[..len].copy_from_slice(&writer.as_bytes()[..len]);
        }
        note
    }

    pub(in crate::supervisor) fn decode(note: &[NotePart; NOTE_PARTS]) -> Self {
        let mut halves = note.as_flattened().chunks_exact(LONGEST_WRITER).map(text);
        Self {
            present: halves.next().unwrap_or_default(),
            former: halves.next().unwrap_or_default(),
        }
    }
}

fn text(half: &[u8]) -> String {
    let len = half.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&half[..len.unwrap_or(half.len())]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I6
    #[test]
    fn writers_are_read_from_their_note_as_they_were_written() {
        let writers = Writers {
            present: "p".repeat(LONGEST_WRITER),
            former: "ä-1".to_owned(),
        };
        assert_eq!(Writers::decode(&writers.encode()), writers);
        let none = Writers::default();
        assert_eq!(Writers::decode(&none.encode()), none);
    }
}
