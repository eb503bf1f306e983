//! The size of a terminal.

use std::io;

use rustix::termios::tcgetwinsize;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TerminalSize {
    pub(crate) columns: u32,
    pub(crate) rows: u32,
}

const EXPECTED: &str = "expected columns and rows, such as 120x40";

/// Parses `120x40`. The daemon says which sizes there are.
pub(crate) fn parse(text: &str) -> Result<TerminalSize, String> {
    let (columns, rows) = text.split_once('x').ok_or(EXPECTED)?;
    let number = |text: &str| text.parse::<u32>().map_err(|_| EXPECTED.to_owned());
    let (columns, rows) = (number(columns)?, number(rows)?);
    match columns.min(rows) {
        0 => Err("a terminal has one column and one row at least".to_owned()),
        _ => Ok(TerminalSize { columns, rows }),
    }
}

/// The most columns and rows that the daemon gives a terminal.
const LARGEST: u32 = 1000;

/// The size of the terminal that this command runs in, as far as a task can have it. `None` without one, or if it has
/// no size.
pub(crate) fn own() -> Option<TerminalSize> {
    let size = tcgetwinsize(io::stdin())
        .or_else(|_| tcgetwinsize(io::stdout()))
        .ok()?;
    of_task(size.ws_col, size.ws_row)
}

/// The size of a task's terminal that comes next to this one.
fn of_task(columns: u16, rows: u16) -> Option<TerminalSize> {
    let limited = |size: u16| u32::from(size).min(LARGEST);
    (columns > 0 && rows > 0).then_some(TerminalSize {
        columns: limited(columns),
        rows: limited(rows),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I5
    #[test]
    fn a_task_gets_the_size_of_this_terminal_as_far_as_it_can_have_it() {
        let size = |columns, rows| of_task(columns, rows).map(|size| (size.columns, size.rows));
        assert_eq!(size(120, 40), Some((120, 40)));
        assert_eq!(size(u16::MAX, 1001), Some((1000, 1000)));
        assert_eq!((size(0, 24), size(80, 0)), (None, None));
    }

    #[test]
    fn a_size_is_two_numbers_of_one_or_more() {
        let (columns, rows) = (120, 40);
        assert_eq!(parse("120x40"), Ok(TerminalSize { columns, rows }));
        for text in ["", "120", "x40", "120x", "0x40", "120x0", "-1x2", "1x2x3"] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
