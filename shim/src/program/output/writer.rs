//! The destination of output: a memory file while there is little of it and nothing asks for it on disk,
//! else the task file.
//!
//! ```text
//!          too much output, no room in memory, ordered, or its name is gone:
//!          copied, synced if required, and only then unlinked
//!  memory ───────────────────────────────────────────────────────────────────> disk
//!    ^  │ the disk refuses: what fits stays here, and the move is tried again
//!    └──┘
//! ```
//!
//! A file holds whole frames only: a frame that was written in part is cut off again.

use core::ffi::CStr;

use heeler_shim::{
    layout::{Head, Piece, Tail},
    log::Stream,
    memory_file::has_room,
};

use super::memory_file::MemoryFile;
use crate::program::{
    clock,
    startup::arguments::Durability,
    sys::{
        Errno, Fd, Result,
        file::{self, Part},
    },
};

/// The most pieces of a full buffer: the end of a block, a whole block, the beginning of a third.
const PIECES: usize = 3;

/// The output written so far.
pub(crate) struct Writer<'a> {
    tail: Tail,
    loss: Loss,
    /// `None` once the output is on disk.
    memory: Option<MemoryFile<'a>>,
    durability: Durability,
}

/// The output that could not be written.
#[derive(Clone, Copy)]
pub(crate) struct Loss {
    /// The first error; 0: none.
    pub(crate) errno: i32,
    pub(crate) bytes: u64,
}

impl<'a> Writer<'a> {
    /// Begins in the memory file, if there is one and it can be created, else on disk.
    pub(crate) fn new(memory: Option<&'a CStr>, durability: Durability) -> Self {
        Self {
            tail: Tail::EMPTY,
            loss: Loss { errno: 0, bytes: 0 },
            memory: memory.and_then(|path| MemoryFile::create(path).ok()),
            durability,
        }
    }

    /// The amount of output.
    pub(crate) fn end(&self) -> u64 {
        self.tail.offset()
    }

    pub(crate) fn loss(&self) -> Loss {
        self.loss
    }

    /// Writes the bytes, or counts them as lost.
    pub(crate) fn write(&mut self, stream: Stream, mut bytes: &[u8], disk: &Fd) {
        if let Some(memory) = &self.memory {
            if has_room(&self.tail, bytes.len()) {
                match append(&mut self.tail, stream, bytes, memory.fd()) {
                    Ok(()) => return,
                    Err((_, rest)) => bytes = rest,
                }
            }
            if let Err(errno) = self.move_to_disk(disk) {
                return self.lose(errno, bytes.len() as u64);
            }
        }
        if let Err((errno, rest)) = append(&mut self.tail, stream, bytes, disk) {
            self.lose(errno, rest.len() as u64);
        }
    }

    /// Moves the output to disk, now or as soon as the disk takes it.
    pub(crate) fn spill(&mut self, disk: &Fd) {
        if let Some(memory) = &mut self.memory {
            memory.want_on_disk();
            let _ = self.move_to_disk(disk);
        }
    }

    /// Returns whether a move to disk still has to be tried again.
    pub(crate) fn is_due_on_disk(&self) -> bool {
        self.memory.as_ref().is_some_and(MemoryFile::is_wanted)
    }

    /// Called after the last output. A memory file that was unlinked by another process would vanish
    /// with this shim's descriptor, so it is saved.
    pub(crate) fn finish(&mut self, disk: &Fd) {
        let unlinked = self.memory.as_ref().is_some_and(MemoryFile::is_unlinked);
        if unlinked && let Err(errno) = self.move_to_disk(disk) {
            self.lose(errno, self.tail.offset());
        }
    }

    fn lose(&mut self, errno: Errno, bytes: u64) {
        self.loss.bytes += bytes;
        if self.loss.errno == 0 {
            self.loss.errno = errno.0;
        }
    }

    fn move_to_disk(&mut self, disk: &Fd) -> Result<()> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        memory.move_to(disk, self.tail.position(), self.durability)?;
        self.memory = None;
        Ok(())
    }
}

/// Writes bytes at the tail. On failure returns the error and the bytes that are not in the file.
fn append<'b>(
    tail: &mut Tail,
    stream: Stream,
    bytes: &'b [u8],
    out: &Fd,
) -> core::result::Result<(), (Errno, &'b [u8])> {
    let mut pieces: [Option<Piece>; PIECES] = [None; PIECES];
    let mut heads = [Head::EMPTY; PIECES];
    let mut parts = [Part::new(&[]); 2 * PIECES];
    let time = clock::stamp();
    let (mut end, mut rest) = (*tail, bytes);
    for (piece, head) in pieces.iter_mut().zip(&mut heads) {
        if !rest.is_empty() {
            let next = end.piece(stream, time, rest.len());
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
        return Ok(());
    };
    let whole = advance_whole(tail, &pieces, written);
    // A reader must not see half a frame.
    let _ = file::truncate(out, tail.position());
    Err((errno, bytes.get(whole..).unwrap_or_default()))
}

/// Moves the tail behind the pieces that are complete in the file; returns their output bytes.
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
