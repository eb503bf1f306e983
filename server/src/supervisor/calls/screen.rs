//! The text on the screen of a task's terminal, drawn from the end of its output.

use std::{
    io,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::spawn_blocking, time::timeout};

use crate::supervisor::Supervisor;
use crate::task::{Item, Tail, Task, TerminalSize};

/// The output that is drawn.
const DRAWN_BYTES: usize = 256 << 10;
/// The characters that are drawn between two looks at the clock.
const STEP: usize = 64;
/// The longest time of drawing: few bytes can move a whole screen, and a task may write nothing else.
const DRAW_WITHIN: Duration = Duration::from_secs(2);
/// The time that a shim has to tell the size.
const SIZE_WITHIN: Duration = Duration::from_secs(1);
/// The memory of a character on one of the two screens of a terminal.
const CELL_BYTES: usize = 24;

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
        2 * CELL_BYTES * cells + 2 * DRAWN_BYTES
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

    /// Draws the screen of a task.
    pub(crate) async fn screen(&self, task: &Arc<Task>, size: TerminalSize) -> io::Result<Screen> {
        let (task_dir, id) = (self.shared.parts.task_dir.clone(), task.id.clone());
        let drawn = spawn_blocking(move || {
            let tail = match task_dir.open(&id)? {
                Some(file) => file.tail(DRAWN_BYTES)?,
                None => Tail::default(),
            };
            draw(&tail, size)
        });
        drawn.await.map_err(io::Error::other)?
    }
}

fn draw(tail: &Tail, size: TerminalSize) -> io::Result<Screen> {
    let (columns, rows) = (size.columns.into(), size.rows.into());
    let mut terminal = avt::Terminal::new(columns, rows).map_err(io::Error::other)?;
    let bytes: Vec<u8> = tail.items.iter().flat_map(data).copied().collect();
    let text = String::from_utf8_lossy(&bytes);
    let (mut rest, until) = (&*text, Instant::now() + DRAW_WITHIN);
    while !rest.is_empty() && Instant::now() < until {
        let (step, later) = rest.split_at(rest.floor_char_boundary(STEP));
        terminal.feed(step);
        rest = later;
    }
    let cursor = terminal.cursor();
    let lines = terminal.screen().visible_lines();
    Ok(Screen {
        size,
        lines: lines
            .map(|line| line.text().trim_end().to_owned())
            .collect(),
        cursor_column: cursor.col,
        cursor_row: cursor.row,
        is_cursor_visible: cursor.visible,
    })
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

    fn drawn(data: &[u8], columns: u16, rows: u16) -> Screen {
        let tail = Tail {
            items: vec![Item::Chunk(Chunk {
                offset: 0,
                stream: Stream::Stdout,
                at: Timestamp(0),
                data: data.to_vec(),
            })],
            end: data.len() as u64,
        };
        draw(&tail, TerminalSize { columns, rows }).unwrap()
    }

    /// I5
    #[test]
    fn characters_and_escape_sequences_are_drawn() {
        let screen = drawn("a\tb\r\nüber\x1b[?25l\x1b[1;3H".as_bytes(), 12, 3);
        assert_eq!(screen.lines, ["a       b", "über", ""]);
        assert_eq!((screen.cursor_column, screen.cursor_row), (2, 0));
        assert!(!screen.is_cursor_visible);
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
