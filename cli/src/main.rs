//! The `heeler` command: `heeler serve` is the daemon, every other subcommand is a client of it.
//!
//! A subcommand is a file in `commands`. It parses its flags with `args`, connects through `context`,
//! calls the daemon with the Rust SDK, and prints what `render` makes of the response. `run` and `attach`
//! share `foreground`.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod args;
mod commands;
mod context;
mod daemon;
mod exit;
mod failure;
mod foreground;
mod out;
mod output_reader;
mod render;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use exit::EXIT_CODES;

/// Start, watch, inspect and stop background tasks
#[derive(Debug, Parser)]
#[command(name = "heeler", version, after_help = EXIT_CODES, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let exit = Cli::parse().command.run();
    exit.unwrap_or_else(|failure| out::report(&failure)).into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_every_command_has_an_example() {
        let mut cli = Cli::command();
        cli.build();
        for command in cli.get_subcommands().filter(|one| one.get_name() != "help") {
            let help = command
                .get_after_help()
                .map(ToString::to_string)
                .unwrap_or_default();
            assert!(help.contains("heeler "), "{}", command.get_name());
        }
    }
}
