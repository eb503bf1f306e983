//! The input of a task, as its shim gets it, and the state that a shim reports.

/// The most bytes that a shim keeps of input that the task has not taken from it.
pub const INPUT_BUFFER: usize = 128 * 1024;

/// The length of an encoded [`Stdin`].
pub const STDIN: usize = 8;

/// The source of a task's stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin {
    /// At its end from the start.
    Empty,
    /// A pipe that the shim writes to.
    Pipe,
    /// A terminal of this size, which is the task's output, too.
    Terminal(TerminalSize),
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalSize {
    pub columns: u16,
    pub rows: u16,
}

impl Stdin {
    pub fn encode(&self) -> [u8; STDIN] {
        let word = match *self {
            Self::Empty => 0,
            Self::Pipe => 1,
            Self::Terminal(size) => 2 | size.word() << 32,
        };
        word.to_le_bytes()
    }

    /// Returns `None` if the bytes are no stdin.
    pub fn decode(bytes: &[u8; STDIN]) -> Option<Self> {
        let word = u64::from_le_bytes(*bytes);
        match word as u32 {
            0 => Some(Self::Empty),
            1 => Some(Self::Pipe),
            2 => Some(Self::Terminal(TerminalSize::of_word(word >> 32))),
            _ => None,
        }
    }
}

impl TerminalSize {
    /// The size as a number of 32 bits.
    pub(crate) fn word(self) -> u64 {
        u64::from(self.columns) | u64::from(self.rows) << 16
    }

    pub(crate) fn of_word(word: u64) -> Self {
        Self {
            columns: word as u16,
            rows: (word >> 16) as u16,
        }
    }
}

/// The state of a task's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputState {
    /// The task has no input.
    Missing,
    Open,
    /// Closed by order of a server. The task may not have read all of it yet.
    Closed,
    /// No process reads it any more.
    Broken,
}

impl InputState {
    pub(crate) fn code(self) -> u64 {
        match self {
            Self::Missing => 0,
            Self::Open => 1,
            Self::Closed => 2,
            Self::Broken => 3,
        }
    }

    pub(crate) fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::Missing),
            1 => Some(Self::Open),
            2 => Some(Self::Closed),
            3 => Some(Self::Broken),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stdin_decodes_to_what_was_encoded() {
        let size = TerminalSize {
            columns: 1000,
            rows: 65_535,
        };
        for stdin in [Stdin::Empty, Stdin::Pipe, Stdin::Terminal(size)] {
            assert_eq!(Stdin::decode(&stdin.encode()), Some(stdin));
        }
        assert_eq!(Stdin::decode(&[3, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
