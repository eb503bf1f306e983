//! `heeler version`: prints the version, as `heeler --version` does.

use clap::Args;

use crate::{exit::Exit, failure::Failure, out::Out};

const EXAMPLES: &str = "\
Example:
  heeler version";

/// Print the version
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Version {}

impl Version {
    pub(crate) fn run(self) -> Result<Exit, Failure> {
        let mut out = Out::new();
        out.line(concat!("heeler ", env!("CARGO_PKG_VERSION")))?;
        out.flush()?;
        Ok(Exit::Success)
    }
}
