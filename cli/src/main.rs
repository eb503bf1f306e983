//! The `heeler` command: `heeler serve` is the daemon, everything else is one call, or a few, of its
//! client. Each subcommand has a file of its own under `commands`.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod card;
mod commands;
mod context;
mod daemon;
mod deferred;
mod departure;
mod drain;
mod duration;
mod exit;
mod farewell;
mod flow;
mod follow;
mod hold;
mod json;
mod lines;
mod listen;
mod out;
mod outlet;
mod rules;
mod serve;
mod signals;
mod size;
mod table;
mod task_args;
mod terminal;
mod text;
mod tree;
mod turn_args;
mod values;
mod words;

use std::process::ExitCode;

use clap::Parser;

use commands::Command;
use exit::{EXIT_CODES, Exit};

/// Starts, watches, inspects and stops background tasks, and never loses sight of one.
#[derive(Debug, Parser)]
#[command(name = "heeler", version, after_help = EXIT_CODES, subcommand_required = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    let exit = Cli::parse().command.run().unwrap_or_else(|failure| {
        if let Some(text) = failure.report() {
            out::note(&text);
        }
        failure.exit()
    });
    Exit::into(exit)
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
    fn every_command_shows_an_example() {
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
