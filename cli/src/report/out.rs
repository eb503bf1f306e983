//! Results go to stdout, everything else to stderr. With `--json` both are JSON.

use std::{
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
    sync::atomic::{AtomicBool, Ordering},
};

use serde_json::json;

use crate::{exit::Exit, failure::Failure, render::text};

/// True with `--json`. Set once, before the command runs.
static JSON: AtomicBool = AtomicBool::new(false);

/// The form of messages on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// One object a line: `{"error": …}`, a google.rpc.Status, or `{"note": …}`.
    Json,
}

/// Sets the form of later messages.
pub(crate) fn set_format(format: Format) {
    JSON.store(format == Format::Json, Ordering::Relaxed);
}

fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes the command's result.
#[derive(Debug)]
pub(crate) struct Out {
    stdout: BufWriter<StdoutLock<'static>>,
}

impl Out {
    pub(crate) fn new() -> Self {
        Self {
            stdout: BufWriter::new(io::stdout().lock()),
        }
    }

    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// Writes to stderr, in order with [`Out::bytes`] if both streams go to the same file.
    pub(crate) fn stderr_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.flush()?;
        io::stderr().write_all(bytes)
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    pub(crate) fn writer(&mut self) -> &mut impl Write {
        &mut self.stdout
    }
}

/// The columns of the terminal that the result goes to; none if it does not go to a terminal.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(io::stdout());
    Some(size.map_or(80, |(width, _)| usize::from(width.0)))
}

/// Prints a message to stderr. It may quote untrusted text, so it is escaped.
pub(crate) fn note(text: &str) {
    match is_json() {
        true => write(&json!({ "note": text }).to_string()),
        false => {
            let lines: Vec<_> = text.lines().map(text::visible).collect();
            write(&format!("heeler: {}", lines.join("\n")));
        }
    }
}

/// Prints the message of a failure and returns its exit.
pub(crate) fn report(failure: &Failure) -> Exit {
    match (failure.message(), is_json()) {
        (Some(_), true) => write(&json!({ "error": failure.status() }).to_string()),
        (Some(text), false) => note(&text),
        (None, _) => {}
    }
    failure.exit()
}

/// One write, since other processes may write there too. A closed stderr is ignored.
fn write(line: &str) {
    let _ = io::stderr().write_all(format!("{line}\n").as_bytes());
}
