//! Where words go: results to stdout, everything else to stderr.

use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use crate::text;

/// The command's result.
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

    /// A line of the result.
    pub(crate) fn line(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.stdout, "{text}")
    }

    /// What a task wrote to its stdout, or the one stream that was asked for.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.write_all(bytes)
    }

    /// What a task wrote to its stderr; in order with [`Out::bytes`] where both go to one place.
    pub(crate) fn stderr_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stdout.flush()?;
        io::stderr().write_all(bytes)
    }

    /// Shows everything so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.stdout.flush()
    }

    /// Where to serialise to.
    pub(crate) fn writer(&mut self) -> &mut impl Write {
        &mut self.stdout
    }
}

/// The columns of the terminal that the result goes to; none if it goes elsewhere.
pub(crate) fn width() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let size = terminal_size::terminal_size_of(io::stdout());
    Some(size.map_or(80, |(width, _)| usize::from(width.0)))
}

/// Something that is not the result. It may quote anybody, so it is made harmless.
pub(crate) fn note(text: &str) {
    let lines: Vec<_> = text.lines().map(text::visible).collect();
    let note = format!("heeler: {}\n", lines.join("\n"));
    // In one piece: others may write there too. With stderr closed there is nobody to tell.
    let _ = io::stderr().write_all(note.as_bytes());
}
