//! The screen of a terminal as a person sees it, after all escape sequences.

use avt::{ScreenKind, Terminal};

use super::terminal::{AtTerminal, COLUMNS, LINES};
use crate::eventually;

impl AtTerminal {
    fn emulated(&self) -> Terminal {
        let mut terminal = Terminal::new(COLUMNS.into(), LINES.into()).unwrap();
        terminal.feed(self.shown().as_str());
        terminal
    }

    /// The lines of the screen.
    pub fn screen(&self) -> Vec<String> {
        let terminal = self.emulated();
        let lines = terminal.screen().visible_lines();
        lines
            .map(|line| line.text().trim_end().to_owned())
            .collect()
    }

    /// The first line of the screen that contains this text.
    pub fn line_of(&self, text: &str) -> Option<usize> {
        self.screen().iter().position(|line| line.contains(text))
    }

    /// Returns whether the screen contains these words, on one line or several.
    pub fn has(&self, words: &str) -> bool {
        let screen = self.screen().join(" ");
        let on_screen: Vec<&str> = screen.split_whitespace().collect();
        on_screen.join(" ").contains(words)
    }

    /// Waits until the screen contains these words.
    pub async fn has_soon(&self, words: &str) {
        eventually(words, || self.has(words)).await;
    }

    /// Waits until the screen does not contain these words.
    pub async fn has_no_longer(&self, words: &str) {
        eventually(words, || !self.has(words)).await;
    }

    /// Returns whether the screen of before is shown, with its cursor.
    pub fn is_left(&self) -> bool {
        let terminal = self.emulated();
        terminal.active_screen_kind() == ScreenKind::Primary && terminal.cursor().visible
    }
}
