//! A client's descriptors, and the time that it may keep the task waiting.

use heeler_shim::log::Stream;

use super::allowance::Allowance;
use crate::program::sys::{
    Errno, Fd, Result,
    file::{self, Open},
    socket,
};

/// The client's descriptors.
pub(super) struct Ends {
    /// `None` once it has ended.
    pub(super) stdin: Option<End>,
    outputs: [End; 2],
    /// The offset of the first byte of output that is not relayed.
    pub(super) at: u64,
    pub(super) allowance: Allowance,
}

/// A pipe that was opened again, so that no other process can make it block, or a socket.
pub(super) enum End {
    Pipe(Fd),
    Socket(Fd),
}

impl End {
    /// `None` for anything else, and for a pipe that this process may not open.
    fn of(fd: Fd, how: Open) -> Option<Self> {
        if socket::is_stream(&fd) {
            return Some(Self::Socket(fd));
        }
        file::open_pipe_again(&fd, how).ok().map(Self::Pipe)
    }

    pub(super) fn fd(&self) -> &Fd {
        match self {
            Self::Pipe(fd) | Self::Socket(fd) => fd,
        }
    }

    fn write(&self, bytes: &[u8]) -> Result<usize> {
        match self {
            Self::Pipe(pipe) => file::write(pipe, bytes),
            Self::Socket(socket) => socket::send_part(socket, bytes),
        }
    }
}

impl Ends {
    /// The ends for stdin, stdout and stderr. `at`: the offset of the next output.
    pub(super) fn of(descriptors: [Option<Fd>; 3], at: u64) -> Option<Self> {
        let [stdin, stdout, stderr] = descriptors;
        Some(Self {
            stdin: Some(End::of(stdin?, Open::PipeToRead)?),
            outputs: [
                End::of(stdout?, Open::PipeToWrite)?,
                End::of(stderr?, Open::PipeToWrite)?,
            ],
            at,
            allowance: Allowance::new(),
        })
    }

    pub(super) fn output(&self, stream: Stream) -> &End {
        let [stdout, stderr] = &self.outputs;
        match stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        }
    }

    /// Writes as much as there is room for; returns the number of bytes, and an error if there is one.
    pub(super) fn write(&mut self, stream: Stream, bytes: &[u8]) -> (usize, Result<()>) {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match self.output(stream).write(rest) {
                Ok(len) => written += len,
                Err(Errno::EINTR) => {}
                Err(errno) => {
                    self.at += written as u64;
                    return (written, Err(errno));
                }
            }
        }
        self.at += written as u64;
        (written, Ok(()))
    }
}
