//! The text on the screen of a task's terminal, drawn from the end of its output.

use std::{
    io,
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    supervisor::{SearchKey, Supervisor},
    task::{Item, Tail, Task, TerminalSize},
};

/// The output that is drawn.
const DRAWN_BYTES: usize = 256 << 10;
/// The characters that are drawn between two looks at the clock.
const STEP: usize = 64;
/// The time of drawing after which a screen is as far as it has come: few bytes can move a whole screen, and a
/// task may write nothing else.
const DRAW_WITHIN: Duration = Duration::from_secs(2);
/// The time after which drawing makes way for others.
const TURN: Duration = Duration::from_millis(20);
/// The time that a shim has to tell the size.
const SIZE_WITHIN: Duration = Duration::from_secs(1);
/// The memory of a character on one of the two screens of a terminal.
const CELL_BYTES: usize = 24;
/// The memory of the rows that one sequence can add before the screen is cut to its size again: it can repeat a
/// character 65,535 times, in rows of one column.
const ADDED_BYTES: usize = 65_535 * (CELL_BYTES + 64);

/// The text on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) size: TerminalSize,
    /// One for each row, without blanks at their ends.
    pub(crate) lines: Vec<String>,
    pub(crate) cursor_column: usize,
    pub(crate) cursor_row: usize,
    pub(crate) is_cursor_visible: bool,
}

impl Screen {
    /// The most memory that it takes to draw a screen of this size.
    pub(crate) fn memory(size: TerminalSize) -> usize {
        let cells = usize::from(size.columns) * usize::from(size.rows);
        2 * CELL_BYTES * cells + 2 * DRAWN_BYTES + ADDED_BYTES
    }
}

impl Supervisor {
    /// The size of a task's screen; `None` if it has no terminal.
    pub(crate) async fn screen_size(&self, task: &Task) -> Option<TerminalSize> {
        let at_start = task.spec.terminal.as_ref()?.size;
        let now = async {
            let standing = self.live(&task.id)?.input_standing(&task.id).await;
            standing.ok()?.size
        };
        let now = timeout(SIZE_WITHIN, now).await.ok().flatten();
        Some(now.unwrap_or(at_start).within_limits())
    }

    /// Draws the screen of a task, in the turns of its reader.
    pub(crate) async fn screen(
        &self,
        reader: SearchKey,
        task: &Task,
        size: TerminalSize,
    ) -> io::Result<Screen> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), task.id.clone());
        let begin = move || {
            let tail = match task_dir.open(&id)? {
                Some(file) => file.tail(DRAWN_BYTES)?,
                None => Tail::default(),
            };
            Drawing::begin(&tail, size)
        };
        let mut drawing = self.in_turn(reader, begin).await??;
        while !drawing.is_done() {
            drawing = self.in_turn(reader, move || drawing.go_on()).await?;
        }
        Ok(drawing.screen())
    }
}

/// A screen that is being drawn.
struct Drawing {
    terminal: avt::Terminal,
    size: TerminalSize,
    text: String,
    /// The part of the text that is drawn.
    drawn: usize,
    took: Duration,
}

impl Drawing {
    fn begin(tail: &Tail, size: TerminalSize) -> io::Result<Self> {
        let (columns, rows) = (size.columns.into(), size.rows.into());
        let bytes: Vec<u8> = tail.items.iter().flat_map(data).copied().collect();
        Ok(Self {
            terminal: avt::Terminal::new(columns, rows).map_err(io::Error::other)?,
            size,
            text: String::from_utf8_lossy(&bytes).into_owned(),
            drawn: 0,
            took: Duration::ZERO,
        })
    }

    fn is_done(&self) -> bool {
        self.drawn == self.text.len() || self.took >= DRAW_WITHIN
    }

    /// Draws for one turn.
    fn go_on(mut self) -> Self {
        let begun = Instant::now();
        while self.drawn < self.text.len() && begun.elapsed() < TURN {
            let rest = &self.text[self.drawn..];
            let step = &rest[..rest.floor_char_boundary(STEP)];
            self.terminal.feed(step);
            self.drawn += step.len();
        }
        self.took += begun.elapsed();
        self
    }

    fn screen(&self) -> Screen {
        let cursor = self.terminal.cursor();
        let lines = self.terminal.screen().visible_lines();
        Screen {
            size: self.size,
            lines: lines
                .map(|line| line.text().trim_end().to_owned())
                .collect(),
            cursor_column: cursor.col,
            cursor_row: cursor.row,
            is_cursor_visible: cursor.visible,
        }
    }
}

fn data(item: &Item) -> &[u8] {
    match item {
        Item::Chunk(chunk) => &chunk.data,
        Item::Gap(_) => &[],
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::task::{Chunk, Stream, Timestamp};

    fn tail(data: &[u8]) -> Tail {
        Tail {
            items: vec![Item::Chunk(Chunk {
                offset: 0,
                stream: Stream::Stdout,
                at: Timestamp(0),
                data: data.to_vec(),
            })],
            end: data.len() as u64,
        }
    }

    fn drawn(data: &[u8], columns: u16, rows: u16) -> Screen {
        let tail = tail(data);
        let mut drawing = Drawing::begin(&tail, TerminalSize { columns, rows }).unwrap();
        while !drawing.is_done() {
            drawing = drawing.go_on();
        }
        drawing.screen()
    }

    /// I5
    #[test]
    fn characters_and_escape_sequences_are_drawn() {
        let screen = drawn("a\tb\r\nüber\x1b[?25l\x1b[1;3H".as_bytes(), 12, 3);
        assert_eq!(screen.lines, ["a       b", "über", ""]);
        assert_eq!((screen.cursor_column, screen.cursor_row), (2, 0));
        assert!(!screen.is_cursor_visible);
    }

    /// I5, O12
    #[test]
    fn a_turn_of_drawing_is_short_whatever_the_task_writes() {
        let repeated = b"x\x1b[65535b".repeat(16_000);
        let tail = tail(&repeated);
        let drawing = Drawing::begin(
            &tail,
            TerminalSize {
                columns: 1,
                rows: 1,
            },
        )
        .unwrap();
        let begun = Instant::now();
        let drawing = drawing.go_on();
        assert!(!drawing.is_done(), "it all fits into a turn");
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "much longer than a turn"
        );
    }

    /// I5
    #[test]
    fn sequences_that_move_a_whole_screen_take_bounded_time() {
        let most = TerminalSize::MOST;
        let begun = Instant::now();
        let screen = drawn(&b"\x1b[2J\x1b[999L\x1b[999S".repeat(16_000), most, most);
        assert_eq!(screen.lines.len(), usize::from(most));
        assert!(begun.elapsed() < Duration::from_secs(20));
    }
}
