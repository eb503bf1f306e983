//! The `heeler` command: `heeler serve` is the daemon, every other subcommand is a client of it.
//!
//! A subcommand is a file in `commands`. It parses its flags with `args` and the `words` for tasks,
//! connects through `context`, calls the daemon with the Rust SDK, prints what `render` makes of the
//! response, and ends as `report` says. `run` and `attach` share `foreground`.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod args;
mod commands;
mod context;
mod daemon;
mod foreground;
mod output_reader;
mod render;
mod report;
mod words;

use std::process::ExitCode;

use clap::{
    Parser,
    error::{ContextKind, ContextValue, ErrorKind},
};

use commands::Command;
use exit::EXIT_CODES;
use failure::Failure;
use out::Format;
// The names by which every other module uses them.
use report::{exit, failure, out};
use words::{completion, suggestion, task_ref};

/// Start, watch, inspect and stop background tasks
#[derive(Debug, Parser)]
#[command(name = "heeler", version, after_help = EXIT_CODES, subcommand_required = true, max_term_width = 80)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    completion::answer();
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return refuse(&error),
    };
    if let Some(args) = command.client_args() {
        out::set_format(args.format());
    }
    let exit = command.run();
    exit.unwrap_or_else(|failure| out::report(&failure)).into()
}

/// Prints the error of the arguments, or the help that was asked for.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = match (error.kind(), error.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::DisplayHelp | ErrorKind::DisplayVersion, _) => error.exit(),
        (_, Some(ContextValue::String(word))) => suggestion::message(word),
        (_, _) if asks_for_json() => error.to_string(),
        (_, _) => error.exit(),
    };
    if asks_for_json() {
        out::set_format(Format::Json);
    }
    out::report(&Failure::Usage(text)).into()
}

/// Returns whether arguments that could not be parsed have `--json` among them.
fn asks_for_json() -> bool {
    let flags = std::env::args_os().take_while(|arg| arg != "--");
    flags.into_iter().any(|arg| arg == "--json")
}

#[cfg(test)]
mod tests;
