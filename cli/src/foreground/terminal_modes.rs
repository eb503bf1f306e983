//! The terminal modes that a task's output has changed. A task that is left or killed does not change them back: the
//! terminal would stay on the alternate screen, or go on to report the mouse. While the command is suspended they are
//! changed back as well, and made again when it goes on.

use std::collections::BTreeMap;

use anstyle_parse::state::{Action, State, state_change};

/// The private modes that are set in a terminal at rest: lines wrap, keys repeat, the cursor is visible.
const SET_AT_REST: [u16; 3] = [7, 8, 25];
/// The most bytes of a sequence that are kept. Longer ones are not understood.
const LONGEST: usize = 64;
const SHIFT_OUT: u8 = 0x0e;
const SHIFT_IN: u8 = 0x0f;

#[derive(Debug, Default)]
pub(crate) struct TerminalModes {
    state: State,
    /// The sequence so far, without its introducer.
    sequence: Vec<u8>,
    /// The settings that are not as they are at rest, and the sequence that has made each so.
    changed: BTreeMap<Setting, Vec<u8>>,
    /// The keyboard protocols on the terminal's stack, and the sequence of the last one.
    keyboards: usize,
    keyboard: Vec<u8>,
}

/// In the order in which they are changed back: what the alternate screen keeps for itself comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Setting {
    Margins,
    Characters,
    Keypad,
    ModifiedKeys,
    CursorShape,
    Private(u16),
    Attributes,
}

impl TerminalModes {
    /// Reads what the terminal is sent. A sequence may continue in the next piece.
    pub(crate) fn read(&mut self, output: &[u8]) {
        // Bytes beyond ASCII are parts of characters: the 8-bit control codes do not occur in UTF-8.
        for &byte in output.iter().filter(|byte| byte.is_ascii()) {
            let (next, action) = state_change(self.state, byte);
            self.act(action, byte);
            if matches!(next, State::CsiEntry | State::DcsEntry | State::Escape) {
                self.sequence.clear();
            }
            if next != State::Anywhere {
                self.state = next;
            }
        }
    }

    fn act(&mut self, action: Action, byte: u8) {
        let is_part = matches!(action, Action::Collect | Action::Param);
        if is_part && self.sequence.len() < LONGEST {
            self.sequence.push(byte);
        } else if action == Action::CsiDispatch {
            self.control(byte);
        } else if action == Action::EscDispatch {
            self.escape(byte);
        } else if action == Action::Execute && matches!(byte, SHIFT_OUT | SHIFT_IN) {
            self.note(Setting::Characters, byte == SHIFT_OUT, vec![byte]);
        }
    }

    /// The sequences that change everything back.
    pub(crate) fn restore(&self) -> Vec<u8> {
        let mut text = String::new();
        if self.keyboards > 0 {
            text.push_str(&format!("\x1b[<{}u", self.keyboards));
        }
        for setting in self.changed.keys() {
            text.push_str(&match setting {
                // To change the margins moves the cursor.
                Setting::Margins => "\x1b7\x1b[r\x1b8".to_owned(),
                Setting::Characters => "\x1b(B\x0f".to_owned(),
                Setting::Keypad => "\x1b>".to_owned(),
                Setting::ModifiedKeys => "\x1b[>4m".to_owned(),
                Setting::CursorShape => "\x1b[0 q".to_owned(),
                Setting::Private(mode) if SET_AT_REST.contains(mode) => format!("\x1b[?{mode}h"),
                Setting::Private(mode) => format!("\x1b[?{mode}l"),
                Setting::Attributes => "\x1b[m".to_owned(),
            });
        }
        text.into_bytes()
    }

    /// The sequences that make the changes again: the alternate screen before what it keeps for itself.
    pub(crate) fn redo(&self) -> Vec<u8> {
        let mut bytes = self
            .changed
            .values()
            .rev()
            .flatten()
            .copied()
            .collect::<Vec<u8>>();
        for _ in 0..self.keyboards {
            bytes.extend_from_slice(&self.keyboard);
        }
        bytes
    }

    /// A control sequence that ends with this byte.
    fn control(&mut self, last: u8) {
        let sequence = std::mem::take(&mut self.sequence);
        let whole = || [b"\x1b[".as_slice(), &sequence, &[last]].concat();
        match (sequence.as_slice(), last) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                for mode in modes.split(|byte| *byte == b';').filter_map(number) {
                    let is_set = last == b'h';
                    self.note(
                        Setting::Private(mode),
                        is_set != SET_AT_REST.contains(&mode),
                        format!("\x1b[?{mode}{}", char::from(last)).into_bytes(),
                    );
                }
            }
            ([b'>', b'4', level @ ..], b'm') => {
                self.note(
                    Setting::ModifiedKeys,
                    !matches!(level, b"" | b";0"),
                    whole(),
                );
            }
            ([b'>', ..], b'u') => {
                self.keyboards += 1;
                self.keyboard = whole();
            }
            ([b'<', count @ ..], b'u') => {
                let count = number(count).unwrap_or(1);
                self.keyboards = self.keyboards.saturating_sub(usize::from(count));
            }
            ([shape @ .., b' '], b'q') => {
                self.note(Setting::CursorShape, !matches!(shape, b"" | b"0"), whole());
            }
            (margins, b'r') if is_numbers(margins) => {
                let redo = [b"\x1b7".as_slice(), &whole(), b"\x1b8"].concat();
                self.note(Setting::Margins, !margins.is_empty(), redo);
            }
            (attributes, b'm') if is_numbers(attributes) => {
                self.note(
                    Setting::Attributes,
                    !matches!(attributes, b"" | b"0"),
                    whole(),
                );
            }
            _ => {}
        }
    }

    /// An escape sequence that ends with this byte.
    fn escape(&mut self, last: u8) {
        match (self.sequence.as_slice(), last) {
            ([], b'=' | b'>') => self.note(Setting::Keypad, last == b'=', b"\x1b=".to_vec()),
            ([b'('], set) => {
                self.note(Setting::Characters, set != b'B', vec![b'\x1b', b'(', set]);
            }
            // A reset of everything.
            ([], b'c') => *self = Self::default(),
            _ => {}
        }
    }

    /// Notes a setting, and the sequence that has changed it.
    fn note(&mut self, setting: Setting, is_changed: bool, redo: Vec<u8>) {
        match is_changed {
            true => self.changed.insert(setting, redo),
            false => self.changed.remove(&setting),
        };
    }
}

pub(super) fn number(digits: &[u8]) -> Option<u16> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Reports whether there are parameters alone, without a private mark.
pub(super) fn is_numbers(parameters: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b';' | b':');
    parameters.iter().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn restored(output: &[&str]) -> String {
        let mut modes = TerminalModes::default();
        for piece in output {
            modes.read(piece.as_bytes());
        }
        String::from_utf8(modes.restore()).unwrap()
    }

    /// I5
    #[test]
    fn what_an_editor_has_changed_is_changed_back() {
        let editor = "\x1b[?1049h\x1b[>4;2m\x1b[?2004h\x1b=\x1b[1;24r\x1b[?25lé\x1b[7mtext";
        assert_eq!(
            restored(&[editor]),
            "\x1b7\x1b[r\x1b8\x1b>\x1b[>4m\x1b[?25h\x1b[?1049l\x1b[?2004l\x1b[m"
        );
        let its_end = "\x1b[r\x1b>\x1b[>4m\x1b[m\x1b[?25h\x1b[?2004l\x1b[?1049l";
        assert_eq!(restored(&[editor, its_end]), "");
    }

    /// I5
    #[test]
    fn what_was_changed_back_can_be_changed_again() {
        let editor = "\x1b[?1049h\x1b[>4;2m\x1b[?2004h\x1b=\x1b[1;24r\x1b[?25l\x1b[7m\x1b[>1u";
        let mut modes = TerminalModes::default();
        modes.read(editor.as_bytes());
        let redo = modes.redo();
        assert!(redo.starts_with(b"\x1b[7m\x1b[?2004h\x1b[?1049h\x1b[?25l"));
        let mut again = TerminalModes::default();
        again.read(&redo);
        assert_eq!(again.restore(), modes.restore());
        assert_eq!(again.redo(), redo);
    }

    /// I5
    #[test]
    fn sequences_may_be_cut_anywhere() {
        let output = "\x1b[?1000;1006h";
        for at in 0..output.len() {
            let (first, rest) = output.split_at(at);
            assert_eq!(restored(&[first, rest]), "\x1b[?1000l\x1b[?1006l");
        }
    }

    /// I5
    #[test]
    fn nested_keyboard_protocols_are_taken_back_one_by_one() {
        assert_eq!(restored(&["\x1b[>1u\x1b[>3u\x1b[<u"]), "\x1b[<1u");
        assert_eq!(restored(&["\x1b[>1u\x1b[<2u"]), "");
    }

    /// I5
    #[test]
    fn text_in_strings_and_endless_sequences_change_nothing() {
        let title = "\x1b]0;[?1049h\x07";
        assert_eq!(restored(&[title]), "");
        let endless = format!("\x1b[?{}h", "1;".repeat(1000));
        let mut modes = TerminalModes::default();
        modes.read(endless.as_bytes());
        assert!(modes.sequence.capacity() <= 2 * LONGEST);
        assert_eq!(restored(&["\x1b[?1049h", "\x1bc"]), "");
    }
}
