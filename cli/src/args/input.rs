//! The flags of a task's input and terminal.

use std::time::Duration;

use clap::Args;
use heeler_client::Spawn;

use super::{
    value::duration,
    value::terminal_size::{self, TerminalSize},
};

#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// Give the task a stdin; `heeler run` passes its own on, `heeler send` writes to it
    #[arg(short = 'i', long)]
    interactive: bool,

    /// Give the task a terminal
    #[arg(short = 't', long)]
    pub(crate) tty: bool,

    /// The size of the terminal in columns and rows, e.g. 120x40 [default: that of this terminal, or 80x24]
    #[arg(long, value_name = "CxR", value_parser = terminal_size::parse, requires = "tty")]
    pub(crate) size: Option<TerminalSize>,

    /// As -i, and tell of a task that waits for input once it has been silent for this time [default: when it is stale]
    #[arg(long, value_name = "T", value_parser = duration::parse, allow_hyphen_values = true)]
    notify_input_after: Option<Duration>,
}

impl InputArgs {
    /// Reports whether the task is to have a stdin, or a terminal in its place.
    pub(crate) fn is_wanted(&self) -> bool {
        self.interactive || self.notify_input_after.is_some()
    }

    pub(super) fn add_to(&self, spawn: Spawn) -> Spawn {
        let spawn = match self.is_wanted() && !self.tty {
            true => spawn.input(),
            false => spawn,
        };
        let spawn = match self.notify_input_after {
            Some(span) => spawn.notify_input_after(span),
            None => spawn,
        };
        match (self.tty, self.size.or_else(terminal_size::own)) {
            (true, Some(size)) => spawn.terminal(size.columns, size.rows),
            // The daemon's defaults.
            (true, None) => spawn.terminal(0, 0),
            (false, _) => spawn,
        }
    }
}
