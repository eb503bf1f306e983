//! How a WAL is laid out, and reading it frame by frame, on behind what is damaged.
//!
//! A frame's checksum goes on from that of the frame before it, and both stand in the file: so a frame
//! behind a damaged one can be checked by what stands there.

use std::{
    fs::{self, File},
    io::{self, BufReader, Read},
    path::Path,
};

const HEADER_SIZE: usize = 32;
const FRAME_HEADER_SIZE: usize = 24;
/// That of every journal that was made here.
pub(super) const PAGE_SIZE: u32 = 4096;
/// The lowest bit says in which order the checksum takes the bytes of a word.
const MAGIC: u32 = 0x377f_0682;
const FORMAT: u32 = 3_007_000;
const READ_AHEAD: usize = 1 << 18;

/// The running checksum.
pub(super) type Sum = [u32; 2];

/// One frame: a page as it is from then on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    /// Which page it says it is.
    pub(super) page: u32,
    /// Whether a transaction ends with it, as it says.
    pub(super) commits: bool,
    /// It is marked as one of this WAL, or known to be by its checksum: not left from an earlier one.
    pub(super) own: bool,
    /// It is what was written.
    pub(super) whole: bool,
    /// SQLite comes as far as this.
    pub(super) followed: bool,
    /// Its checksum goes on from what the frame before it holds, though not from what that one says.
    pub(super) vouches_for_the_last: bool,
}

/// What SQLite has noted in its shared memory, which outlives a process though not the machine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index {
    pub(super) salts: [u8; 8],
    /// The last frame that was committed.
    pub(super) committed: u32,
    /// The last one that was moved into the file.
    pub(super) moved: u32,
}

/// A WAL that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    wal: BufReader<File>,
    header: [u8; HEADER_SIZE],
    page: Vec<u8>,
    big_endian: bool,
    following: bool,
    /// What the next checksum may go on from: what the last frame says, and what it comes to.
    before: Option<[Sum; 2]>,
}

impl Index {
    /// None where there is none, or it is not whole.
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
        let is_twice_there = rest.get(..48) == Some(header);
        if !is_twice_there || sum != [native(40), native(44)] || native(0) != FORMAT {
            return Ok(None);
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[32..40]);
        Ok(Some(Self {
            salts,
            committed: native(16),
            moved: native(96),
        }))
    }
}

impl Reading {
    /// None where there is not even a header.
    pub(super) fn begin(wal: File) -> io::Result<Option<Self>> {
        let mut wal = BufReader::with_capacity(READ_AHEAD, wal);
        let mut header = [0; HEADER_SIZE];
        if !fill(&mut wal, &mut header)? {
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
        Ok(Some(Self {
            wal,
            header,
            page: vec![0; size as usize],
            big_endian,
            following: whole,
            before: Some([stored, computed]),
        }))
    }

    pub(super) fn page_size(&self) -> u32 {
        self.page.len() as u32
    }

    pub(super) fn salts(&self) -> [u8; 8] {
        let mut salts = [0; 8];
        salts.copy_from_slice(&self.header[16..24]);
        salts
    }

    /// The next frame; none behind the last one that is there to its end.
    pub(super) fn next(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; FRAME_HEADER_SIZE];
        if !fill(&mut self.wal, &mut head)? {
            return Ok(None);
        }
        let is_marked = head[8..16] == self.header[16..24];
        if !is_marked && self.before.is_none() {
            // Left from an earlier WAL, like the one before it.
            self.wal.seek_relative(self.page.len() as i64)?;
            self.following = false;
            return Ok(Some(Frame::of(&head)));
        }
        if !fill(&mut self.wal, &mut self.page)? {
            return Ok(None);
        }
        let from = |before: Sum| {
            let sum = checksum(self.big_endian, before, &head[..8]);
            checksum(self.big_endian, sum, &self.page)
        };
        let stored = sum_at(&head, 16);
        let [by_word, by_content] = self.before.map_or([None; 2], |before| {
            let by_word = from(before[0]);
            let same = before[0] == before[1];
            [
                Some(by_word),
                Some(if same { by_word } else { from(before[1]) }),
            ]
        });
        let page = u32::from_be_bytes(word(&head));
        let whole = page != 0 && (by_word == Some(stored) || by_content == Some(stored));
        self.following &= is_marked && whole && by_word == Some(stored);
        let own = is_marked || whole;
        self.before = own.then_some([stored, by_word.filter(|_| !whole).unwrap_or(stored)]);
        Ok(Some(Frame {
            own,
            whole,
            followed: self.following,
            vouches_for_the_last: whole && by_word != Some(stored),
            ..Frame::of(&head)
        }))
    }
}

impl Frame {
    /// What it says of itself.
    fn of(head: &[u8; FRAME_HEADER_SIZE]) -> Self {
        Self {
            page: u32::from_be_bytes(word(head)),
            commits: u32::from_be_bytes(word(&head[4..])) != 0,
            own: false,
            whole: false,
            followed: false,
            vouches_for_the_last: false,
        }
    }
}

pub(super) fn frame_size(page_size: u32) -> u64 {
    FRAME_HEADER_SIZE as u64 + u64::from(page_size)
}

/// Where a frame begins.
pub(super) fn frame_offset(page_size: u32, number: u32) -> u64 {
    let frames_before = u64::from(number.saturating_sub(1));
    HEADER_SIZE as u64 + frames_before * frame_size(page_size)
}

/// Where its page begins.
pub(super) fn page_offset(page_size: u32, number: u32) -> u64 {
    frame_offset(page_size, number) + FRAME_HEADER_SIZE as u64
}

/// A whole header like another one, and the checksum to go on from.
pub(super) fn new_header(page_size: u32, salts: [u8; 8]) -> ([u8; HEADER_SIZE], Sum) {
    let mut header = [0; HEADER_SIZE];
    header[..4].copy_from_slice(&MAGIC.to_be_bytes());
    header[4..8].copy_from_slice(&FORMAT.to_be_bytes());
    header[8..12].copy_from_slice(&page_size.to_be_bytes());
    header[16..24].copy_from_slice(&salts);
    let sum = checksum(false, [0, 0], &header[..24]);
    put_sum(&mut header[24..], sum);
    (header, sum)
}

/// The header of a frame that follows on a checksum, and its own.
pub(super) fn new_frame_header(
    before: Sum,
    salts: [u8; 8],
    page_and_size: [u8; 8],
    page: &[u8],
) -> ([u8; FRAME_HEADER_SIZE], Sum) {
    let sum = checksum(false, before, &page_and_size);
    let sum = checksum(false, sum, page);
    let mut head = [0; FRAME_HEADER_SIZE];
    head[..8].copy_from_slice(&page_and_size);
    head[8..16].copy_from_slice(&salts);
    put_sum(&mut head[16..], sum);
    (head, sum)
}

fn checksum(big_endian: bool, from: Sum, bytes: &[u8]) -> Sum {
    match big_endian {
        true => sum_words(from, bytes, u32::from_be_bytes),
        false => sum_words(from, bytes, u32::from_le_bytes),
    }
}

/// Made for each order of bytes, since a start reads megabytes of it.
fn sum_words([mut first, mut second]: Sum, bytes: &[u8], read: impl Fn([u8; 4]) -> u32) -> Sum {
    for pair in bytes.chunks_exact(8) {
        first = first.wrapping_add(read(word(pair))).wrapping_add(second);
        second = second
            .wrapping_add(read(word(&pair[4..])))
            .wrapping_add(first);
    }
    [first, second]
}

fn put_sum(to: &mut [u8], [first, second]: Sum) {
    to[..4].copy_from_slice(&first.to_be_bytes());
    to[4..8].copy_from_slice(&second.to_be_bytes());
}

fn sum_at(bytes: &[u8], at: usize) -> Sum {
    let word_at = |at: usize| u32::from_be_bytes(word(&bytes[at..]));
    [word_at(at), word_at(at + 4)]
}

/// The first four bytes; zero where there are fewer.
fn word(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_default()
}

/// Whether there was enough to fill it.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match from.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
