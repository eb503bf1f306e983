//! `heeler man`: prints a manual page.

use std::io::IsTerminal;

use clap::{Args, CommandFactory};
use clap_mangen::Man as Page;

use crate::{
    Cli,
    exit::Exit,
    failure::Failure,
    out::{self, Out},
    suggestion,
};

const EXAMPLES: &str = "\
Examples:
  heeler man | man -l -
  heeler man run > heeler-run.1

The page is in roff, the format of man(1). Without a command it is the page of heeler itself.";

/// Print a manual page
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Man {
    /// The command
    command: Option<String>,
}

impl Man {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut page = Vec::new();
        self.page()?.render(&mut page)?;
        if std::io::stdout().is_terminal() {
            out::note("this is roff; read it with `heeler man | man -l -`");
        }
        let mut out = Out::new();
        out.bytes(&page)?;
        out.flush()?;
        Ok(Exit::Success)
    }

    fn page(&self) -> Result<Page, Failure> {
        let mut heeler = Cli::command();
        heeler.build();
        let Some(name) = &self.command else {
            return Ok(page(heeler, "heeler"));
        };
        let found = heeler.find_subcommand(name).cloned();
        let found = found.ok_or_else(|| Failure::Usage(suggestion::message(name)))?;
        let title = format!("heeler-{}", found.get_name());
        Ok(page(found, &title))
    }
}

fn page(command: clap::Command, title: &str) -> Page {
    Page::new(command)
        .title(title)
        // Blank, not empty: roff would take the next field for the date.
        .date(" ")
        .source(concat!("heeler ", env!("CARGO_PKG_VERSION")))
        .manual("Heeler")
}
