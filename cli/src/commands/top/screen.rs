//! The terminal: its alternate screen in raw mode.
//!
//! The terminal is restored when the screen is dropped, on a panic, and before the command is suspended.

use std::io;

use nix::sys::signal::{Signal, raise};
use ratatui::{
    DefaultTerminal,
    crossterm::{
        execute,
        terminal::{self, EnterAlternateScreen},
    },
};

use super::{
    model::Model,
    view::{self, Colours},
};
use crate::render::colour;

#[derive(Debug)]
pub(super) struct Screen {
    terminal: DefaultTerminal,
    colours: Colours,
    /// The terminal shows this screen, in raw mode.
    is_taken: bool,
}

impl Screen {
    /// Takes the terminal. From now on a panic restores it, too.
    pub(super) fn open() -> io::Result<Self> {
        let colours = match colour::is_wanted_on(&io::stdout()) {
            true => Colours::Shown,
            false => Colours::None,
        };
        let terminal = ratatui::try_init().inspect_err(|_| {
            let _ = ratatui::try_restore();
        })?;
        Ok(Self {
            terminal,
            colours,
            is_taken: true,
        })
    }

    pub(super) fn draw(&mut self, model: &Model) -> io::Result<()> {
        let colours = self.colours;
        let draw = |frame: &mut ratatui::Frame<'_>| view::draw(frame, model, colours);
        self.terminal.draw(draw).map(drop)
    }

    /// Clears the terminal, so that the next frame draws everything again.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // Not `Terminal::clear`: it asks the terminal for its cursor, and the keys' thread gets the answer.
        let size = self.terminal.size()?;
        self.terminal.resize(size.into())
    }

    /// Stops this process like the terminal's own suspend key, and not at all if no shell could resume it.
    pub(super) fn suspend(&mut self) -> io::Result<()> {
        self.restore();
        // This process has no handler for SIGTTIN, and the kernel drops the signal in an orphaned group.
        let _ = raise(Signal::SIGTTIN);
        self.take()
    }

    /// Takes the terminal again, whose modes a shell may have changed.
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.restore();
        self.take()
    }

    /// Shows the screen again after [`Screen::restore`].
    pub(super) fn take(&mut self) -> io::Result<()> {
        self.is_taken = true;
        terminal::enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        self.clear()
    }

    /// Gives the terminal back as it was.
    pub(super) fn restore(&mut self) {
        // To leave the alternate screen twice would move the cursor.
        if !std::mem::take(&mut self.is_taken) {
            return;
        }
        // A terminal that is gone cannot be restored.
        let _ = self.terminal.show_cursor();
        let _ = ratatui::try_restore();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.restore();
    }
}
