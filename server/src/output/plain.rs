//! Text without terminal escape sequences, and text that does not end inside a character.

use anstyle_parse::state::{Action, State, state_change};

/// Maximum length of an incomplete character.
pub(crate) const LONGEST_PARTIAL: usize = 3;

const DELETE: u8 = 0x7f;

/// Removes escape sequences, and control characters that are no white space, from one stream. A sequence
/// may continue in the next piece; a line feed ends it in any case, so that one that is never completed
/// costs a line at most.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Stripper {
    state: State,
}

impl Stripper {
    /// Returns the bytes that are to be shown.
    pub(crate) fn strip(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut kept = Vec::with_capacity(bytes.len());
        kept.extend(bytes.iter().copied().filter(|byte| self.shows(*byte)));
        kept
    }

    fn shows(&mut self, byte: u8) -> bool {
        match byte {
            b'\n' => {
                self.state = State::Ground;
                true
            }
            // A part of a character: the 8-bit control codes do not occur in UTF-8.
            0x80.. => self.state == State::Ground,
            _ => {
                let (next, action) = state_change(self.state, byte);
                if next != State::Anywhere {
                    self.state = next;
                }
                (action == Action::Print && byte != DELETE)
                    || (action == Action::Execute && byte.is_ascii_whitespace())
            }
        }
    }
}

/// Reports whether there is something to remove.
pub(crate) fn has_controls(bytes: &[u8]) -> bool {
    let is_control = |byte: &u8| byte.is_ascii_control() && !byte.is_ascii_whitespace();
    bytes.iter().any(is_control)
}

/// A line as plain text: without its line end, cut at `limit` bytes.
pub(crate) fn line_text(line: &[u8], limit: usize) -> String {
    let mut shown = Stripper::default().strip(without_line_end(line));
    if shown.len() > limit {
        shown.truncate(limit);
        shown.truncate(limit - incomplete_tail(&shown));
    }
    let mut text = String::from_utf8_lossy(&shown).into_owned();
    // A replaced byte is longer than it was.
    text.truncate(text.floor_char_boundary(limit));
    text
}

/// A line without its line feed, and without the carriage return before that.
pub(crate) fn without_line_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The number of bytes at the end that begin an incomplete character.
pub(crate) fn incomplete_tail(bytes: &[u8]) -> usize {
    for len in 1..=LONGEST_PARTIAL.min(bytes.len()) {
        let tail = &bytes[bytes.len() - len..];
        if let Err(error) = str::from_utf8(tail)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return len;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> String {
        line_text(text.as_bytes(), usize::MAX)
    }

    /// O5
    #[test]
    fn colours_cursor_movements_titles_and_links_are_removed() {
        assert_eq!(plain("\x1b[1;31merror\x1b[0m: no"), "error: no");
        assert_eq!(plain("\x1b[2K\x1b[1Gdone\x1b(B"), "done");
        assert_eq!(plain("\x1b]0;title\x07text"), "text");
        let link = "\x1b]8;;https://heeler.dev\x1b\\here\x1b]8;;\x1b\\ it is";
        assert_eq!(plain(link), "here it is");
        assert_eq!(plain("a\tb\x08\x7f\0c\r\n"), "a\tbc");
        assert_eq!(plain("\u{9b}é€🐕"), "\u{9b}é€🐕");
    }

    /// O5
    #[test]
    fn a_sequence_that_is_never_completed_costs_its_line_alone() {
        let mut stripper = Stripper::default();
        let shown = stripper.strip(b"a\x1b]0;no end\nb\x1b[3\nc");
        assert_eq!(shown, b"a\nb\nc");
    }

    /// O5
    #[test]
    fn a_text_that_is_cut_ends_with_a_whole_character() {
        for limit in 0..9 {
            let text = line_text("aé€🐕\n".as_bytes(), limit);
            assert!(text.len() <= limit && "aé€🐕".starts_with(&text), "{text}");
        }
        assert!(line_text(&[0xFF; 100], 10).len() <= 10);
    }

    proptest! {
        /// O5
        #[test]
        fn the_size_of_the_pieces_does_not_matter(
            bytes in prop::collection::vec(prop::sample::select(&b"\x1b[]0;m\x07\\a\n\xC3\xA9"[..]), 0..60),
            cut in any::<prop::sample::Index>(),
        ) {
            let (first, second) = bytes.split_at(cut.index(bytes.len() + 1));
            let mut stripper = Stripper::default();
            let mut shown = stripper.strip(first);
            shown.extend(stripper.strip(second));
            prop_assert_eq!(shown, Stripper::default().strip(&bytes));
        }
    }
}
