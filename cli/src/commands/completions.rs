//! `heeler completions`: prints a completion script.

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::{Cli, exit::Exit, failure::Failure, out::Out};

const EXAMPLE: &str = "\
Example:
  heeler completions bash > ~/.local/share/bash-completion/completions/heeler";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut script = io::Cursor::new(Vec::new());
        generate(self.shell, &mut Cli::command(), "heeler", &mut script);
        let mut out = Out::new();
        out.bytes(script.get_ref())?;
        out.flush()?;
        Ok(Exit::Success)
    }
}
