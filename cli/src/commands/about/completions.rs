//! `heeler completions`: prints a completion script. The script asks `heeler` itself for candidates (see
//! [`crate::completion`]).

use clap::{Args, ValueEnum};
use clap_complete::env::{Bash, Elvish, EnvCompleter, Fish, Powershell, Zsh};

use crate::{completion, exit::Exit, failure::Failure, out::Out};

const EXAMPLES: &str = "\
Examples:
  heeler completions bash > ~/.local/share/bash-completion/completions/heeler
  heeler completions zsh > ~/.zfunc/_heeler
  heeler completions fish > ~/.config/fish/completions/heeler.fish

Commands, flags and their values are completed, and the ids, names, sessions and queues of a running daemon.";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// The shell
    shell: ShellName,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ShellName {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl ShellName {
    fn completer(self) -> &'static dyn EnvCompleter {
        match self {
            Self::Bash => &Bash,
            Self::Elvish => &Elvish,
            Self::Fish => &Fish,
            Self::Powershell => &Powershell,
            Self::Zsh => &Zsh,
        }
    }
}

impl Completions {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut script = Vec::new();
        let completer = self.shell.completer();
        completer.write_registration(
            completion::VARIABLE,
            "heeler",
            "heeler",
            "heeler",
            &mut script,
        )?;
        let mut out = Out::new();
        out.bytes(&script)?;
        out.flush()?;
        Ok(Exit::Success)
    }
}
