//! The task's output, from its two pipes into the task file.
//!
//! A pipe is always read, whether or not the file takes what came: a full disk costs output, which
//! is counted, and never stops a task. What is in the file is whole: a frame that the disk took
//! only in part is cut off again.

use heeler_shim::{
    layout::{Head, Piece, Tail},
    log::Stream,
};

use super::{
    clock,
    memory::{BUFFER, Buffer},
    sys::{
        Errno, Fd,
        file::{self, Part},
        signals::Poll,
    },
};

/// The room that a pipe gets once it has been seen full.
const GROWN: usize = 1024 * 1024;
/// Into how many pieces a full buffer can fall: the end of a block, a whole one, the beginning of a
/// third.
const PIECES: usize = 3;

/// The reading ends, and how far the file is written.
pub(super) struct Capture<'a> {
    pipes: [Pipe; 2],
    tail: Tail,
    loss: Loss,
    buffer: &'a mut Buffer,
}

/// What did not get into the file.
#[derive(Clone, Copy)]
pub(super) struct Loss {
    /// The first reason; 0: none.
    pub(super) errno: i32,
    pub(super) bytes: u64,
}

struct Pipe {
    stream: Stream,
    /// Until everybody who could write to it is gone.
    fd: Option<Fd>,
    grown: bool,
}

impl<'a> Capture<'a> {
    /// From these pipes.
    pub(super) fn new(stdout: Fd, stderr: Fd, buffer: &'a mut Buffer) -> Self {
        let pipe = |stream, fd| Pipe {
            stream,
            fd: Some(fd),
            grown: false,
        };
        Self {
            pipes: [pipe(Stream::Stdout, stdout), pipe(Stream::Stderr, stderr)],
            tail: Tail::EMPTY,
            loss: Loss { errno: 0, bytes: 0 },
            buffer,
        }
    }

    /// For output.
    pub(super) fn polls(&self) -> [Poll; 2] {
        let [stdout, stderr] = &self.pipes;
        [Poll::new(stdout.fd.as_ref()), Poll::new(stderr.fd.as_ref())]
    }

    /// How much output is in the file.
    pub(super) fn end(&self) -> u64 {
        self.tail.offset()
    }

    /// What is missing.
    pub(super) fn loss(&self) -> Loss {
        self.loss
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
    pub(super) fn read_ready(&mut self, polls: &[Poll; 2], out: &Fd) {
        for (index, poll) in polls.iter().enumerate() {
            if poll.is_ready() {
                self.read(index, BUFFER, out);
            }
        }
    }

    /// Takes what is in both pipes now, and not what comes meanwhile.
    pub(super) fn drain(&mut self, out: &Fd) {
        let mut left = [0; 2];
        for (left, pipe) in left.iter_mut().zip(&self.pipes) {
            *left = pipe.fd.as_ref().map_or(0, file::waiting);
        }
        while left != [0; 2] {
            for (index, left) in left.iter_mut().enumerate() {
                if *left > 0 {
                    *left -= match self.read(index, *left, out) {
                        0 => *left,
                        len => len.min(*left),
                    };
                }
            }
        }
    }

    /// Takes up to a buffer from a pipe; how much it was.
    fn read(&mut self, index: usize, limit: usize, out: &Fd) -> usize {
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
        let trouble = append(&mut self.tail, stream, bytes, out);
        if let Some((errno, lost)) = trouble {
            self.loss.bytes += lost as u64;
            if self.loss.errno == 0 {
                self.loss.errno = errno.0;
            }
        }
        len
    }
}

/// Writes bytes at the tail; if that fails, why, and how many are not in the file.
fn append(tail: &mut Tail, stream: Stream, bytes: &[u8], out: &Fd) -> Option<(Errno, usize)> {
    let mut pieces: [Option<Piece>; PIECES] = [None; PIECES];
    let mut heads = [Head::EMPTY; PIECES];
    let mut parts = [Part::new(&[]); 2 * PIECES];
    let time_micros = clock::now_micros();
    let (mut end, mut rest) = (*tail, bytes);
    for (piece, head) in pieces.iter_mut().zip(&mut heads) {
        if !rest.is_empty() {
            let next = end.piece(stream, time_micros, rest.len());
            rest = rest.get(next.output()..).unwrap_or_default();
            end = end.advance(&next);
            *head = next.head();
            *piece = Some(next);
        }
    }
    rest = bytes;
    for ((pair, head), piece) in parts
        .chunks_exact_mut(2)
        .zip(&heads)
        .zip(pieces.iter().flatten())
    {
        let (body, later) = rest.split_at_checked(piece.output()).unwrap_or((rest, &[]));
        pair.copy_from_slice(&[Part::new(head.as_bytes()), Part::new(body)]);
        rest = later;
    }
    let Err((errno, written)) = file::write_all_at(out, &mut parts, tail.position()) else {
        *tail = end;
        return None;
    };
    let whole = advance_whole(tail, &pieces, written);
    // Half a frame must not mislead a reader.
    let _ = file::truncate(out, tail.position());
    Some((errno, bytes.len() - whole))
}

/// Moves the tail behind the pieces that are in the file whole; how many bytes of output they hold.
fn advance_whole(tail: &mut Tail, pieces: &[Option<Piece>], mut written: usize) -> usize {
    let before = tail.offset();
    for piece in pieces.iter().flatten() {
        let Some(left) = written.checked_sub(piece.size()) else {
            break;
        };
        written = left;
        *tail = tail.advance(piece);
    }
    (tail.offset() - before) as usize
}
