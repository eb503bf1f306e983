//! The descriptors between a shim and its leader: pipes, or a terminal.

use heeler_shim::{input::Stdin, log::Stream};

use super::input::Sink;
use crate::program::{
    output::capture::Source,
    sys::{
        Fd, Result,
        file::{self, NonBlocking},
        terminal::Terminal,
    },
};

/// The two ends of the leader's output pipes.
pub(super) struct Pipes {
    stdout: (Fd, Fd),
    stderr: (Fd, Fd),
}

impl Pipes {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            stdout: file::pipe(NonBlocking::Reads)?,
            stderr: file::pipe(NonBlocking::Reads)?,
        })
    }
}

/// The streams of a task.
pub(super) struct Streams {
    pub(super) sources: [Source; 2],
    /// `None`: the task has no input.
    pub(super) sink: Option<Sink>,
    pub(super) ends: LeaderEnds,
    /// The reading end of a pipe for input, which is open in the leader alone once that runs.
    pub(super) stdin_end: Option<Fd>,
}

/// The leader's ends. The shim keeps the slave of a terminal open, too: a process may open its terminal again. It also
/// keeps those of the first attempt's pipes, which reach no end-of-file before the end of that attempt, and closes those
/// of a later one once its leader runs.
pub(super) enum LeaderEnds {
    Pipes {
        stdout: Fd,
        stderr: Fd,
    },
    /// The number of the slave, which the sink owns.
    Terminal(i32),
}

impl Streams {
    /// The streams for this stdin. A terminal takes the place of the pipes.
    pub(super) fn new(stdin: Stdin, pipes: Pipes) -> Result<Self> {
        let (stdin_end, input) = match stdin {
            Stdin::Terminal(size) => return Self::of_terminal(Terminal::open(size)?),
            Stdin::Empty => (None, None),
            Stdin::Pipe => {
                let (read, write) = file::pipe(NonBlocking::Writes)?;
                (Some(read), Some(Sink::Pipe(write)))
            }
        };
        let ((stdout, stdout_end), (stderr, stderr_end)) = (pipes.stdout, pipes.stderr);
        Ok(Self {
            sources: [
                Source::pipe(Stream::Stdout, Some(stdout)),
                Source::pipe(Stream::Stderr, Some(stderr)),
            ],
            sink: input,
            ends: LeaderEnds::Pipes {
                stdout: stdout_end,
                stderr: stderr_end,
            },
            stdin_end,
        })
    }

    fn of_terminal(terminal: Terminal) -> Result<Self> {
        Ok(Self {
            sources: [
                Source::terminal(file::copy(&terminal.master)?),
                Source::pipe(Stream::Stderr, None),
            ],
            ends: LeaderEnds::Terminal(terminal.slave.raw()),
            sink: Some(Sink::Terminal(terminal)),
            stdin_end: None,
        })
    }
}
