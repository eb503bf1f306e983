//! The output part of a file: bytes in, blocks out, within the rules.
//!
//! ```text
//!            within the bound                         the bound, or a full disk
//!  append ────────────────────> a block at the end ──────────────────────────────> overwrite
//!    │                                  ^          the record first, then block by    │ ^ │
//!    │                                  │          block: the oldest behind the head  │ └─┘
//!    │                                  └───── at the end of the file, if it may grow ┘
//!    └── the total of TRUNCATE or KILL ──> dropped, and counted
//! ```
//!
//! A block at the end ends with the file: a frame that was written in part is cut off. A block over older
//! output ends with zeros, and a frame in it is valid only once all of it is written. So a shim that is
//! killed in the middle leaves whole frames.

use heeler_shim::{
    layout::{Blocks, Head, Log, Piece, Surface},
    log::{BLOCK_HEADER, BlockHeader, Stream, block_position},
    output_policy::OutputPolicy,
    stamp::Stamp,
};

use super::limits::Limits;
use crate::program::{
    clock,
    sys::{
        Errno, Fd, Result,
        file::{self, Part},
    },
};

/// The most pieces of a full buffer: the end of a block, a whole block, the beginning of a third.
const PIECES: usize = 3;

/// Bytes that could not be written, and the error.
pub(super) type Unwritten<'b> = (Errno, &'b [u8]);

/// The output written so far.
pub(super) struct LogFile {
    pub(super) log: Log,
    pub(super) limits: Limits,
    pub(super) loss: Loss,
    /// The error of a disk on which the file cannot grow.
    full: Option<Errno>,
}

/// The output that could not be kept.
#[derive(Clone, Copy)]
pub(crate) struct Loss {
    /// The first error; 0: none.
    pub(crate) errno: i32,
    pub(crate) bytes: u64,
}

/// The growth of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// Where the disk refuses it, the oldest output makes room for the newest.
    OnDisk,
    /// Where memory refuses it, the write fails.
    InMemory,
    /// Memory has no room, and the disk refuses the output with this error.
    Refused(Errno),
}

impl LogFile {
    pub(super) fn new(policy: OutputPolicy) -> Self {
        Self {
            log: Log::new(policy.bound()),
            limits: Limits::new(policy),
            loss: Loss { errno: 0, bytes: 0 },
            full: None,
        }
    }

    /// Writes bytes to the file `out`. The records are in `disk`.
    pub(super) fn write<'b>(
        &mut self,
        stream: Stream,
        mut bytes: &'b [u8],
        (out, disk): (&Fd, &Fd),
        growth: Growth,
    ) -> core::result::Result<(), Unwritten<'b>> {
        let time = clock::stamp();
        let mut may_wrap = growth != Growth::InMemory;
        while !bytes.is_empty() {
            let Some(piece) = self.log.piece(stream, time, bytes.len()) else {
                self.limits.drop(bytes.len() as u64, &self.log, time, disk);
                return Ok(());
            };
            let (written, result) = match (piece.surface(), growth) {
                (Surface::Fresh, Growth::Refused(errno)) => (0, Err(errno)),
                (Surface::Fresh, Growth::OnDisk | Growth::InMemory) => {
                    self.append((stream, time), bytes, out)
                }
                (Surface::Used, _) => self.overwrite(&piece, time, bytes, (out, disk)),
            };
            bytes = bytes.get(written..).unwrap_or_default();
            if let Err(errno) = result {
                if !may_wrap || !self.wrap_instead_of(&piece, errno, out) {
                    return Err((errno, bytes));
                }
                may_wrap = false;
            }
        }
        Ok(())
    }

    /// Continues at the oldest block behind the head, because the file cannot grow by this piece. Returns
    /// whether that is possible: the blocks must be in order.
    fn wrap_instead_of(&mut self, piece: &Piece, errno: Errno, out: &Fd) -> bool {
        let end = self.log.blocks();
        match piece.overwritten() {
            // The last block is short, and was given up.
            Some(block) if block + 1 == end => {
                self.log.removed(Blocks {
                    from: block,
                    to: end,
                });
                let _ = file::truncate(out, self.log.size());
            }
            Some(_) => return false,
            None if self.log.is_at_end() => {}
            None => return false,
        }
        let head = self.log.head_of_full_file().filter(|_| errno.is_full());
        let Some((head, Ok(head_end))) = head.map(|head| (head, first_offset(out, head))) else {
            return false;
        };
        self.full = Some(errno);
        self.log.set_head(head, head_end);
        self.log.wrap();
        true
    }

    pub(super) fn lose(&mut self, errno: Errno, bytes: u64) {
        self.loss.bytes += bytes;
        if self.loss.errno == 0 {
            self.loss.errno = errno.0;
        }
    }

    /// Writes as many pieces at the end of the file as there is room for. Returns the number of bytes that
    /// are in the file.
    fn append(
        &mut self,
        (stream, time): (Stream, Stamp),
        bytes: &[u8],
        out: &Fd,
    ) -> (usize, Result<()>) {
        let mut pieces: [Option<Piece>; PIECES] = [None; PIECES];
        let mut heads = [Head::EMPTY; PIECES];
        let mut parts = [Part::new(&[]); 2 * PIECES];
        let (mut end, mut rest) = (self.log, bytes);
        for ((piece, head), pair) in pieces
            .iter_mut()
            .zip(&mut heads)
            .zip(parts.chunks_exact_mut(2))
        {
            let next = end.piece(stream, time, rest.len());
            let fresh = next.filter(|next| next.surface() == Surface::Fresh && !rest.is_empty());
            let Some(next) = fresh else { break };
            *head = next.head();
            let (body, later) = rest.split_at_checked(next.output()).unwrap_or((rest, &[]));
            pair.copy_from_slice(&[Part::new(head.as_bytes()), Part::new(body)]);
            end.advance(&next);
            *piece = Some(next);
            rest = later;
        }
        let position = pieces[0].map_or(self.log.position(), |piece| piece.position());
        let Err((errno, written)) = file::write_all_at(out, &mut parts, position) else {
            self.log = end;
            return (bytes.len() - rest.len(), Ok(()));
        };
        let whole = self.advance_whole(&pieces, written);
        // A reader must not see half a frame.
        let _ = file::truncate(out, self.log.size());
        (whole, Err(errno))
    }

    /// Moves the log behind the pieces that are complete in the file; returns their output bytes.
    fn advance_whole(&mut self, pieces: &[Option<Piece>], mut written: usize) -> usize {
        let before = self.log.offset();
        for piece in pieces.iter().flatten() {
            let Some(left) = written.checked_sub(piece.size()) else {
                break;
            };
            written = left;
            self.log.advance(piece);
        }
        (self.log.offset() - before) as usize
    }

    /// Writes a piece over older output. Returns the number of bytes that are in the file.
    fn overwrite(
        &mut self,
        piece: &Piece,
        time: Stamp,
        bytes: &[u8],
        (out, disk): (&Fd, &Fd),
    ) -> (usize, Result<()>) {
        let body = bytes.get(..piece.output()).unwrap_or_default();
        let written = self
            .give_up(piece, time, (out, disk))
            .and_then(|()| put_sealed(piece, body, out));
        if written.is_err() {
            return (0, written);
        }
        self.log.advance(piece);
        (body.len(), Ok(()))
    }

    /// Records the rule by which a block is overwritten. If there is none but a full disk, its output is
    /// lost, and counted.
    fn give_up(&mut self, piece: &Piece, time: Stamp, (out, disk): (&Fd, &Fd)) -> Result<()> {
        let Some(block) = piece.overwritten() else {
            return Ok(());
        };
        if !self.limits.has_ring() {
            // The file does not grow now: space that the file system has allocated ahead is given back.
            let _ = file::truncate(out, self.log.size());
        }
        self.limits.record_ring(&self.log, time, disk)?;
        if let Some(errno) = self.full.filter(|_| self.log.is_below_bound()) {
            let (from, to) = (
                first_offset(out, block),
                first_offset(out, self.log.after(block)),
            );
            let bytes = to.unwrap_or(0).saturating_sub(from.unwrap_or(0));
            self.lose(errno, bytes);
        }
        Ok(())
    }
}

/// Writes a piece in such an order that it is read whole or not at all.
fn put_sealed(piece: &Piece, body: &[u8], out: &Fd) -> Result<()> {
    let head = piece.head();
    let mut parts = [
        Part::new(head.as_bytes()),
        Part::new(body),
        Part::new(piece.foot()),
    ];
    file::write_all_at(out, &mut parts, piece.position()).map_err(|(errno, _)| errno)?;
    let (seal, position) = piece.seal();
    match file::write_at(out, &[seal], position)? {
        1 => Ok(()),
        _ => Err(Errno::ENOSPC),
    }
}

/// Reads the first offset of a block.
pub(super) fn first_offset(out: &Fd, block: u64) -> Result<u64> {
    let mut bytes = [0; BLOCK_HEADER];
    file::read_at(out, &mut bytes, block_position(block))?;
    match BlockHeader::decode(&bytes) {
        Some(header) => Ok(header.first_offset),
        None => Err(Errno::EINVAL),
    }
}
