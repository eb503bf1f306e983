//! The sources of a task's output: two pipes, or a terminal.
//!
//! A source is always read, even if its bytes cannot be written: a full disk costs output, which is
//! counted, and never stops a task. [`super::writer`] decides which file the bytes go to.

use heeler_shim::log::Stream;

use super::{log_file::Loss, writer::Writer};
use crate::program::{
    pages::{BUFFER, Buffer},
    sys::{Errno, Fd, file, signals::Poll},
    task::relay::Relay,
};

/// More than a terminal holds. It does not tell how much that is, as a part is on its way inside the kernel.
const IN_TERMINAL: usize = 256 * 1024;

/// The sources, and the writer for their bytes.
pub(crate) struct Capture<'a> {
    sources: [Source; 2],
    writer: Writer<'a>,
    buffer: &'a mut Buffer,
}

/// The reading end of a pipe, or the master of a terminal.
pub(crate) struct Source {
    stream: Stream,
    /// Closed at end-of-file.
    fd: Option<Fd>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Pipe,
    GrownPipe,
    Terminal,
}

impl Source {
    /// A pipe, or no source at all.
    pub(crate) fn pipe(stream: Stream, fd: Option<Fd>) -> Self {
        Self {
            stream,
            fd,
            kind: Kind::Pipe,
        }
    }

    pub(crate) fn terminal(master: Fd) -> Self {
        Self {
            stream: Stream::Stdout,
            fd: Some(master),
            kind: Kind::Terminal,
        }
    }

    /// The most bytes that are in the source now.
    fn waiting(&self) -> usize {
        match (&self.fd, self.kind) {
            (None, _) => 0,
            (Some(fd), Kind::Pipe | Kind::GrownPipe) => file::waiting(fd),
            (Some(_), Kind::Terminal) => IN_TERMINAL,
        }
    }
}

impl<'a> Capture<'a> {
    pub(crate) fn new(sources: [Source; 2], writer: Writer<'a>, buffer: &'a mut Buffer) -> Self {
        Self {
            sources,
            writer,
            buffer,
        }
    }

    /// Goes on with the sources of another leader.
    pub(crate) fn read_from(&mut self, sources: [Source; 2]) {
        self.sources = sources;
    }

    pub(crate) fn polls(&self) -> [Poll; 2] {
        let [first, second] = &self.sources;
        [Poll::new(first.fd.as_ref()), Poll::new(second.fd.as_ref())]
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

    /// Reads at most a buffer from each source that is ready. The order of two that became ready together
    /// is unknown; stdout first is the likelier one.
    pub(crate) fn read_ready(&mut self, polls: &[Poll; 2], disk: &Fd, relay: &mut Relay) {
        for (index, poll) in polls.iter().enumerate() {
            if poll.is_ready() && relay.takes_output() {
                self.read(index, BUFFER, disk, relay);
            }
        }
    }

    /// Reads what is in both sources now. Of what arrives meanwhile, it reads nothing from a pipe, and a bounded
    /// amount from a terminal.
    pub(crate) fn drain(&mut self, disk: &Fd, relay: &mut Relay) {
        let mut left = [0; 2];
        for (left, source) in left.iter_mut().zip(&self.sources) {
            *left = source.waiting();
        }
        while left != [0; 2] {
            for (index, left) in left.iter_mut().enumerate() {
                if *left > 0 {
                    *left -= match self.read(index, *left, disk, relay) {
                        0 => *left,
                        len => len.min(*left),
                    };
                }
            }
        }
    }

    /// Reads up to a buffer from a source; returns the number of bytes.
    fn read(&mut self, index: usize, limit: usize, disk: &Fd, relay: &mut Relay) -> usize {
        let Some(source) = self.sources.get_mut(index) else {
            return 0;
        };
        let Some(fd) = &source.fd else { return 0 };
        let (limit, at) = (limit.min(BUFFER), self.writer.end());
        let passed = relay.pass(source.stream, fd, limit, at);
        let room = self.buffer.bytes();
        let room = room.get_mut(..passed.unwrap_or(limit)).unwrap_or_default();
        let len = match file::read(fd, room) {
            // A terminal without a slave fails instead.
            Ok(0) | Err(Errno::EIO) => {
                source.fd = None;
                return 0;
            }
            Ok(len) => len,
            Err(_) => return 0,
        };
        if let (BUFFER, Kind::Pipe) = (len, source.kind) {
            source.kind = Kind::GrownPipe;
            file::grow_pipe(fd);
        }
        self.buffer.touch(len);
        let stream = source.stream;
        let bytes = self.buffer.bytes().get(..len).unwrap_or_default();
        if passed.is_none() {
            relay.put(stream, bytes, at);
        }
        self.writer.write(stream, bytes, disk);
        len
    }
}
