//! The terminal of a task.

use serde::{Deserialize, Serialize};

/// The type of a terminal, if the request names none.
pub(crate) const DEFAULT_TERM: &str = "xterm-256color";

/// A terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terminal {
    pub size: TerminalSize,
    /// The value of TERM.
    pub term: String,
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

impl TerminalSize {
    /// The most columns and rows. The screen is drawn on request, so its memory has a limit.
    pub(crate) const MOST: u16 = 1000;

    /// The nearest size within the limits: a task can give its terminal any size.
    pub(crate) fn within_limits(self) -> Self {
        Self {
            columns: self.columns.clamp(1, Self::MOST),
            rows: self.rows.clamp(1, Self::MOST),
        }
    }
}

impl Default for TerminalSize {
    fn default() -> Self {
        Self {
            columns: 80,
            rows: 24,
        }
    }
}
