//! `heeler completions`: the shell's own script, made from the arguments' definition.

use std::io;

use clap::{Args, CommandFactory};
use clap_complete::{Shell, generate};

use crate::{
    Cli,
    exit::{Exit, Failure},
    out::Out,
};

const EXAMPLE: &str = "\
Example:
  heeler completions bash > ~/.local/share/bash-completion/completions/heeler";

/// Print a script that completes arguments in a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct Completions {
    /// For which shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut script = io::Cursor::new(Vec::new());
        generate(self.shell, &mut Cli::command(), "heeler", &mut script);
        let mut out = Out::new();
        out.bytes(script.get_ref())?;
        out.flush()?;
        Ok(Exit::Done)
    }
}
