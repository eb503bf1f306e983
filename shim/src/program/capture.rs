//! The task's two pipes, and what comes out of them.
//!
//! A pipe is always read, whether or not there is a place for what came: a full disk costs output,
//! which is counted, and never stops a task. Where it goes is [`super::output`]'s business.

use heeler_shim::log::Stream;

use super::{
    memory::{BUFFER, Buffer},
    output::{Loss, Output},
    sys::{Fd, file, signals::Poll},
};

/// The room that a pipe gets once it has been seen full.
const GROWN: usize = 1024 * 1024;

/// The reading ends, and where what they give is written.
pub(super) struct Capture<'a> {
    pipes: [Pipe; 2],
    output: Output<'a>,
    buffer: &'a mut Buffer,
}

struct Pipe {
    stream: Stream,
    /// Until everybody who could write to it is gone.
    fd: Option<Fd>,
    grown: bool,
}

impl<'a> Capture<'a> {
    /// From these pipes.
    pub(super) fn new(stdout: Fd, stderr: Fd, output: Output<'a>, buffer: &'a mut Buffer) -> Self {
        let pipe = |stream, fd| Pipe {
            stream,
            fd: Some(fd),
            grown: false,
        };
        Self {
            pipes: [pipe(Stream::Stdout, stdout), pipe(Stream::Stderr, stderr)],
            output,
            buffer,
        }
    }

    /// For output.
    pub(super) fn polls(&self) -> [Poll; 2] {
        let [stdout, stderr] = &self.pipes;
        [Poll::new(stdout.fd.as_ref()), Poll::new(stderr.fd.as_ref())]
    }

    /// How much output there is.
    pub(super) fn end(&self) -> u64 {
        self.output.end()
    }

    /// What is missing.
    pub(super) fn loss(&self) -> Loss {
        self.output.loss()
    }

    /// Where it is written.
    pub(super) fn output(&mut self) -> &mut Output<'a> {
        &mut self.output
    }

    /// Whether it is to be moved to the disk, and is not there.
    pub(super) fn is_due_on_disk(&self) -> bool {
        self.output.is_due_on_disk()
    }

    /// Memory for something else, between two reads.
    pub(super) fn scratch(&mut self) -> &mut [u8] {
        self.buffer.touch(BUFFER);
        self.buffer.bytes()
    }

    /// Whether [`Self::rest`] has something to do.
    pub(super) fn is_restless(&self) -> bool {
        self.buffer.is_touched()
    }

    /// Gives memory back, when there is no output for a while.
    pub(super) fn rest(&mut self) {
        if self.is_restless() {
            self.buffer.release();
        }
    }

    /// Takes what is in the pipes that are ready, a buffer of each at most. Of two that became ready
    /// together nobody knows the order; a program mostly says what it does before what went wrong.
    pub(super) fn read_ready(&mut self, polls: &[Poll; 2], disk: &Fd) {
        for (index, poll) in polls.iter().enumerate() {
            if poll.is_ready() {
                self.read(index, BUFFER, disk);
            }
        }
    }

    /// Takes what is in both pipes now, and not what comes meanwhile.
    pub(super) fn drain(&mut self, disk: &Fd) {
        let mut left = [0; 2];
        for (left, pipe) in left.iter_mut().zip(&self.pipes) {
            *left = pipe.fd.as_ref().map_or(0, file::waiting);
        }
        while left != [0; 2] {
            for (index, left) in left.iter_mut().enumerate() {
                if *left > 0 {
                    *left -= match self.read(index, *left, disk) {
                        0 => *left,
                        len => len.min(*left),
                    };
                }
            }
        }
    }

    /// Takes up to a buffer from a pipe; how much it was.
    fn read(&mut self, index: usize, limit: usize, disk: &Fd) -> usize {
        let Some(pipe) = self.pipes.get_mut(index) else {
            return 0;
        };
        let Some(fd) = &pipe.fd else { return 0 };
        let room = self.buffer.bytes();
        let room = room.get_mut(..limit.min(BUFFER)).unwrap_or_default();
        let len = match file::read(fd, room) {
            Ok(0) => {
                pipe.fd = None;
                return 0;
            }
            Ok(len) => len,
            Err(_) => return 0,
        };
        if len == BUFFER && !pipe.grown {
            pipe.grown = true;
            file::grow_pipe(fd, GROWN);
        }
        self.buffer.touch(len);
        let stream = pipe.stream;
        let bytes = self.buffer.bytes().get(..len).unwrap_or_default();
        self.output.write(stream, bytes, disk);
        len
    }
}
