//! The task's two pipes.
//!
//! A pipe is always read, even if its bytes cannot be written: a full disk costs output, which is
//! counted, and never stops a task. [`super::writer`] decides which file the bytes go to.

use heeler_shim::log::Stream;

use super::{log_file::Loss, writer::Writer};
use crate::program::{
    pages::{BUFFER, Buffer},
    sys::{Fd, file, signals::Poll},
};

/// The capacity of a pipe once it was full.
const GROWN: usize = 1024 * 1024;

/// The reading ends of the pipes, and the writer for their bytes.
pub(crate) struct Capture<'a> {
    pipes: [Pipe; 2],
    writer: Writer<'a>,
    buffer: &'a mut Buffer,
}

struct Pipe {
    stream: Stream,
    /// Closed at end-of-file.
    fd: Option<Fd>,
    grown: bool,
}

impl<'a> Capture<'a> {
    pub(crate) fn new(stdout: Fd, stderr: Fd, writer: Writer<'a>, buffer: &'a mut Buffer) -> Self {
        let pipe = |stream, fd| Pipe {
            stream,
            fd: Some(fd),
            grown: false,
        };
        Self {
            pipes: [pipe(Stream::Stdout, stdout), pipe(Stream::Stderr, stderr)],
            writer,
            buffer,
        }
    }

    pub(crate) fn polls(&self) -> [Poll; 2] {
        let [stdout, stderr] = &self.pipes;
        [Poll::new(stdout.fd.as_ref()), Poll::new(stderr.fd.as_ref())]
    }

    /// The amount of output so far.
    pub(crate) fn end(&self) -> u64 {
        self.writer.end()
    }

    pub(crate) fn loss(&self) -> Loss {
        self.writer.loss()
    }

    pub(crate) fn writer(&mut self) -> &mut Writer<'a> {
        &mut self.writer
    }

    /// Returns whether output in memory still has to move to disk.
    pub(crate) fn is_due_on_disk(&self) -> bool {
        self.writer.is_due_on_disk()
    }

    /// The buffer, for other uses between two reads.
    pub(crate) fn scratch(&mut self) -> &mut [u8] {
        self.buffer.touch(BUFFER);
        self.buffer.bytes()
    }

    /// Returns whether [`Self::release_memory`] has something to do.
    pub(crate) fn has_memory_to_release(&self) -> bool {
        self.buffer.is_touched()
    }

    /// Gives memory back, for use in a silence.
    pub(crate) fn release_memory(&mut self) {
        if self.has_memory_to_release() {
            self.buffer.release();
        }
    }

    /// Reads at most a buffer from each pipe that is ready. The order of two that became ready together
    /// is unknown; stdout first is the likelier one.
    pub(crate) fn read_ready(&mut self, polls: &[Poll; 2], disk: &Fd) {
        for (index, poll) in polls.iter().enumerate() {
            if poll.is_ready() {
                self.read(index, BUFFER, disk);
            }
        }
    }

    /// Reads what is in both pipes now, and nothing that arrives meanwhile.
    pub(crate) fn drain(&mut self, disk: &Fd) {
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

    /// Reads up to a buffer from a pipe; returns the number of bytes.
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
        self.writer.write(stream, bytes, disk);
        len
    }
}
