//! Where output goes: to a file in memory while it is little and nobody wants it on the disk, else to
//! the task file.
//!
//! ```text
//!          too much, no room in memory, ordered, or its name is gone:
//!          copied, synced where that is wanted, and only then unlinked
//!  memory ────────────────────────────────────────────────────────────> disk
//!    ^  │ the disk refuses: what fits stays here, and it is tried again
//!    └──┘
//! ```
//!
//! What is in a file is whole: a frame that was taken only in part is cut off again.

use core::ffi::CStr;

use heeler_shim::{
    layout::{Head, Piece, Tail},
    log::{BLOCKS_START, Stream},
    memory::has_room,
};

use super::{
    arguments::Durability,
    clock::{self, Moment},
    memory::{BUFFER, Pages},
    sys::{
        Errno, Fd, Result,
        file::{self, Part},
    },
};

/// Into how many pieces a full buffer can fall: the end of a block, a whole one, the beginning of a
/// third.
const PIECES: usize = 3;
/// How soon a disk that has refused output from memory is asked again.
const ASK_AGAIN_MILLIS: u64 = 1000;

/// What is written so far, and where.
pub(super) struct Output<'a> {
    tail: Tail,
    loss: Loss,
    /// Until it is on the disk.
    memory: Option<Memory<'a>>,
    durability: Durability,
}

/// What did not get into a file.
#[derive(Clone, Copy)]
pub(super) struct Loss {
    /// The first reason; 0: none.
    pub(super) errno: i32,
    pub(super) bytes: u64,
}

struct Memory<'a> {
    fd: Fd,
    path: &'a CStr,
    /// Whether it is wanted on the disk, however little it is.
    wanted: bool,
    refusal: Option<Refusal>,
}

/// The disk's last answer.
#[derive(Clone, Copy)]
struct Refusal {
    errno: Errno,
    /// When it may be asked again.
    until: Moment,
}

impl<'a> Output<'a> {
    /// In memory, if there is a place for it, else on the disk.
    pub(super) fn new(memory: Option<&'a CStr>, durability: Durability) -> Self {
        Self {
            tail: Tail::EMPTY,
            loss: Loss { errno: 0, bytes: 0 },
            memory: memory.and_then(|path| Memory::make(path).ok()),
            durability,
        }
    }

    /// How much there is.
    pub(super) fn end(&self) -> u64 {
        self.tail.offset()
    }

    /// What is missing.
    pub(super) fn loss(&self) -> Loss {
        self.loss
    }

    /// Writes it, or counts it as lost.
    pub(super) fn write(&mut self, stream: Stream, mut bytes: &[u8], disk: &Fd) {
        if let Some(memory) = &self.memory {
            if has_room(&self.tail, bytes.len()) {
                match append(&mut self.tail, stream, bytes, &memory.fd) {
                    Ok(()) => return,
                    Err((_, rest)) => bytes = rest,
                }
            }
            if let Err(errno) = self.move_to(disk) {
                return self.lose(errno, bytes.len() as u64);
            }
        }
        if let Err((errno, rest)) = append(&mut self.tail, stream, bytes, disk) {
            self.lose(errno, rest.len() as u64);
        }
    }

    /// Has it on the disk from now on, or as soon as the disk takes it.
    pub(super) fn spill(&mut self, disk: &Fd) {
        if let Some(memory) = &mut self.memory {
            memory.wanted = true;
            let _ = self.move_to(disk);
        }
    }

    /// Whether the disk is to be asked again.
    pub(super) fn is_due_on_disk(&self) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.wanted)
    }

    /// There will be no more. A memory file that somebody has unlinked would go with us.
    pub(super) fn finish(&mut self, disk: &Fd) {
        let nameless = self
            .memory
            .as_ref()
            .is_some_and(|memory| matches!(file::links_and_size(&memory.fd), Ok((0, _))));
        if nameless && let Err(errno) = self.move_to(disk) {
            self.lose(errno, self.tail.offset());
        }
    }

    fn lose(&mut self, errno: Errno, bytes: u64) {
        self.loss.bytes += bytes;
        if self.loss.errno == 0 {
            self.loss.errno = errno.0;
        }
    }

    /// Moves what is in memory to the disk. It is in both, whole, before the name in memory goes.
    fn move_to(&mut self, disk: &Fd) -> Result<()> {
        let Some(memory) = &mut self.memory else {
            return Ok(());
        };
        let now = Moment::now();
        if let Some(Refusal { errno, until }) = memory.refusal
            && now < until
        {
            return Err(errno);
        }
        let moved = copy(&memory.fd, disk, self.tail.position())
            .and_then(|()| match self.durability {
                Durability::Process => Ok(()),
                Durability::Power => file::sync_data(disk),
            })
            .and_then(|()| match file::remove(memory.path) {
                Ok(()) | Err(Errno::ENOENT) => Ok(()),
                Err(errno) => Err(errno),
            });
        match moved {
            Ok(()) => self.memory = None,
            Err(errno) => {
                let until = now.after(ASK_AGAIN_MILLIS);
                memory.refusal = Some(Refusal { errno, until });
                // Others may have a better use for the space.
                let _ = file::truncate(disk, BLOCKS_START);
            }
        }
        moved
    }
}

impl<'a> Memory<'a> {
    /// Makes the file. The task is ours, and so is whatever is in the place of its file.
    fn make(path: &'a CStr) -> Result<Self> {
        let fd = match file::open(path, file::Open::Create) {
            Err(Errno::EEXIST) => {
                file::remove(path)?;
                file::open(path, file::Open::Create)?
            }
            made => made?,
        };
        Ok(Self {
            fd,
            path,
            wanted: false,
            refusal: None,
        })
    }
}

/// Copies all output up to a position. Not by way of the one buffer, where the next bytes wait.
fn copy(from: &Fd, to: &Fd, end: u64) -> Result<()> {
    let mut pages = Pages::new(BUFFER)?;
    let mut at = BLOCKS_START;
    while at < end {
        let len = (end - at).min(BUFFER as u64) as usize;
        let room = pages.bytes().get_mut(..len).unwrap_or_default();
        let len = match file::read_at(from, room, at)? {
            // Somebody has cut it. What is gone reads as a damaged block.
            0 => return Ok(()),
            len => len,
        };
        let mut parts = [Part::new(room.get(..len).unwrap_or_default())];
        file::write_all_at(to, &mut parts, at).map_err(|(errno, _)| errno)?;
        at += len as u64;
    }
    Ok(())
}

/// Writes bytes at the tail; if that fails, why, and those that are not in the file.
fn append<'b>(
    tail: &mut Tail,
    stream: Stream,
    bytes: &'b [u8],
    out: &Fd,
) -> core::result::Result<(), (Errno, &'b [u8])> {
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
        return Ok(());
    };
    let whole = advance_whole(tail, &pieces, written);
    // Half a frame must not mislead a reader.
    let _ = file::truncate(out, tail.position());
    Err((errno, bytes.get(whole..).unwrap_or_default()))
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
