//! The layout of a WAL, and reading it frame by frame, beyond damaged frames.
//!
//! ```text
//! header: magic, format, page size, sequence, salts (16..24), checksum (24..32)
//! frame:  page number, file size if it commits, salts (8..16), checksum (16..24), page
//! ```
//!
//! The checksum of a frame continues that of the frame before it, and both are stored: so a frame
//! behind a damaged one can be checked against the stored checksum.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use crate::journal::file::RETIRED_HEADER;

const HEADER_SIZE: usize = RETIRED_HEADER.len();
const FRAME_HEADER_SIZE: usize = 24;
/// The page size of every journal.
const PAGE_SIZE: u32 = 4096;
/// The lowest bit tells in which order the checksum takes the bytes of a word.
const MAGIC: u32 = 0x377f_0682;
const FORMAT: u32 = 3_007_000;
const READ_AHEAD: usize = 1 << 18;

/// The size of a frame of a journal's WAL.
pub(super) const FRAME_SIZE: u64 = FRAME_HEADER_SIZE as u64 + PAGE_SIZE as u64;

/// The running checksum.
type Sum = [u32; 2];

/// One frame: a new version of one page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// The frame is marked as the last of a transaction.
    pub(super) commits: bool,
    /// It is one of this WAL, and not left from an earlier one: by its salts or by its checksum.
    pub(super) own: bool,
    /// Its checksum fits.
    pub(super) whole: bool,
    /// SQLite reads the WAL up to this frame, at least.
    pub(super) followed: bool,
    /// Its checksum continues the computed checksum of the frame before it, not the stored one: only the
    /// stored one is damaged.
    pub(super) vouches_for_the_last: bool,
}

/// SQLite's notes on the WAL, in shared memory that outlives a process, but not the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index {
    pub(super) salts: [u8; 8],
    /// The last frame that was committed.
    pub(super) committed: u32,
    /// The last frame that was moved into the file.
    pub(super) moved: u32,
    /// The last frame that a checkpoint may have begun to move.
    pub(super) moving: u32,
}

/// The frames of a WAL, in order.
#[derive(Debug)]
pub(super) struct Frames {
    wal: BufReader<File>,
    salts: [u8; 8],
    page: Vec<u8>,
    big_endian: bool,
    following: bool,
    /// The checksums that the next frame may continue: the stored one and the computed one.
    before: Option<[Sum; 2]>,
}

impl Index {
    /// Reads the notes; none if there are none, or they are damaged.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let Some((header, rest)) = bytes.split_at_checked(48) else {
            return Ok(None);
        };
        let native = |at: usize| u32::from_ne_bytes(word(bytes.get(at..).unwrap_or(&[])));
        let sum = checksum(cfg!(target_endian = "big"), [0, 0], &header[..40]);
        let is_stored_twice = rest.get(..48) == Some(header);
        if !is_stored_twice || sum != [native(40), native(44)] || native(0) != FORMAT {
            return Ok(None);
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[32..40]);
        Ok(Some(Self {
            salts,
            committed: native(16),
            moved: native(96),
            moving: native(128),
        }))
    }
}

impl Frames {
    /// Reads the header; none if there is not even that, or it says that there are no commits. Where it is damaged, the salts are taken from
    /// SQLite's notes, or else from the first frame that has any: frames are recognised by them.
    pub(super) fn read(wal: File, noted: Option<&Index>) -> io::Result<Option<Self>> {
        let mut wal = BufReader::with_capacity(READ_AHEAD, wal);
        let mut header = [0; HEADER_SIZE];
        if !fill(&mut wal, &mut header)? || header == *RETIRED_HEADER {
            return Ok(None);
        }
        let stored = sum_at(&header, 24);
        let (claimed, native) = (header[3] & 1 == 1, cfg!(target_endian = "big"));
        let fits = checksum(claimed, [0, 0], &header[..24]) == stored;
        let big_endian = if fits { claimed } else { native };
        let computed = checksum(big_endian, [0, 0], &header[..24]);
        let size = u32::from_be_bytes(word(&header[8..]));
        let whole = stored == computed
            && u32::from_be_bytes(word(&header)) & !1 == MAGIC
            && u32::from_be_bytes(word(&header[4..])) == FORMAT
            && (512..=65536).contains(&size)
            && size.is_power_of_two();
        let size = if whole { size } else { PAGE_SIZE };
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        if !whole {
            let noted = noted.map(|index| index.salts);
            let first = salts_of_frames(wal.fill_buf()?, FRAME_HEADER_SIZE + size as usize);
            salts = noted.or(first).unwrap_or(salts);
        }
        Ok(Some(Self {
            wal,
            salts,
            page: vec![0; size as usize],
            big_endian,
            following: whole,
            before: Some([stored, computed]),
        }))
    }

    pub(super) fn frame_size(&self) -> u64 {
        (FRAME_HEADER_SIZE + self.page.len()) as u64
    }

    pub(super) fn salts(&self) -> [u8; 8] {
        self.salts
    }

    /// The next frame; none behind the last complete one.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; FRAME_HEADER_SIZE];
        if !fill(&mut self.wal, &mut head)? {
            return Ok(None);
        }
        let commits = u32::from_be_bytes(word(&head[4..])) != 0;
        let has_salts = head[8..16] == self.salts;
        if !has_salts && self.before.is_none() {
            // Left from an earlier WAL, like the one before it.
            self.wal.seek_relative(self.page.len() as i64)?;
            self.following = false;
            return Ok(Some(Frame {
                commits,
                own: false,
                whole: false,
                followed: false,
                vouches_for_the_last: false,
            }));
        }
        if !fill(&mut self.wal, &mut self.page)? {
            return Ok(None);
        }
        let stored = sum_at(&head, 16);
        let [from_stored, from_computed] = self.sums(&head);
        let has_page = u32::from_be_bytes(word(&head)) != 0;
        let whole = has_page && (from_stored == Some(stored) || from_computed == Some(stored));
        self.following &= has_salts && whole && from_stored == Some(stored);
        let own = has_salts || whole;
        self.before = own.then_some([stored, from_stored.filter(|_| !whole).unwrap_or(stored)]);
        Ok(Some(Frame {
            commits,
            own,
            whole,
            followed: self.following,
            vouches_for_the_last: whole && from_stored != Some(stored),
        }))
    }

    /// The checksums of a frame, continued from the stored and from the computed one before it.
    fn sums(&self, head: &[u8; FRAME_HEADER_SIZE]) -> [Option<Sum>; 2] {
        let from = |before: Sum| {
            let sum = checksum(self.big_endian, before, &head[..8]);
            checksum(self.big_endian, sum, &self.page)
        };
        self.before.map_or([None; 2], |[stored, computed]| {
            let from_stored = from(stored);
            let from_computed = if stored == computed {
                from_stored
            } else {
                from(computed)
            };
            [Some(from_stored), Some(from_computed)]
        })
    }
}

/// The salts of the first frame that has any. Frames of an earlier WAL come last.
fn salts_of_frames(frames: &[u8], size: usize) -> Option<[u8; 8]> {
    let mut salts = frames
        .chunks(size)
        .filter_map(|frame| frame.get(8..16)?.try_into().ok());
    salts.find(|salts| *salts != [0; 8])
}

fn checksum(big_endian: bool, from: Sum, bytes: &[u8]) -> Sum {
    match big_endian {
        true => sum_words(from, bytes, u32::from_be_bytes),
        false => sum_words(from, bytes, u32::from_le_bytes),
    }
}

/// Generic over the byte order because a start reads megabytes of frames.
fn sum_words([mut first, mut second]: Sum, bytes: &[u8], read: impl Fn([u8; 4]) -> u32) -> Sum {
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(read(word(pair))).wrapping_add(second);
        second = second
            .wrapping_add(read(word(&pair[4..])))
            .wrapping_add(first);
    }
    [first, second]
}

fn sum_at(bytes: &[u8], at: usize) -> Sum {
    let word_at = |at: usize| u32::from_be_bytes(word(&bytes[at..]));
    [word_at(at), word_at(at + 4)]
}

/// The first four bytes; zero if there are fewer.
fn word(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_default()
}

/// Fills the buffer; false if there was not enough to read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
