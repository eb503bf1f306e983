//! The position of the next output in a task file: the arithmetic of blocks and frames, without I/O.
//!
//! A [`Tail`] is the end of the written output. Bytes from a pipe are cut into [`Piece`]s, each a frame
//! with the headers that must precede it. A piece moves the tail, by [`Tail::advance`], only once all
//! of it is in the file.

use crate::{
    log::{BLOCK_HEADER, BLOCK_SIZE, BLOCKS_START, BlockHeader, FRAME_HEADER, FrameHeader, Stream},
    stamp::Stamp,
};

/// The longest head of a piece: the unusable end of a block, a block header and a frame header.
pub const MAX_HEAD: usize = FRAME_HEADER + BLOCK_HEADER + FRAME_HEADER;

/// The end of the written output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tail {
    position: u64,
    offset: u64,
}

/// A frame, and the bytes that must be written before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Zeros, to the end of a block that has no room for a frame.
    padding: usize,
    /// The header of a block, if this piece begins one.
    block: Option<BlockHeader>,
    frame: FrameHeader,
}

/// The bytes that precede the output bytes of a piece in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; MAX_HEAD],
    len: usize,
}

impl Tail {
    /// The tail of a file without output.
    pub const EMPTY: Self = Self {
        position: BLOCKS_START,
        offset: 0,
    };

    /// The file position of the next piece.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// The number of output bytes so far.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the piece for the first of `len` bytes, as many as fit in the block.
    pub fn piece(&self, stream: Stream, time: Stamp, len: usize) -> Piece {
        let used = ((self.position - BLOCKS_START) % BLOCK_SIZE as u64) as usize;
        let room = BLOCK_SIZE - used;
        let (padding, block, room) = if used == 0 {
            (0, true, BLOCK_SIZE - BLOCK_HEADER)
        } else if room <= FRAME_HEADER {
            (room, true, BLOCK_SIZE - BLOCK_HEADER)
        } else {
            (0, false, room)
        };
        let len = len.min(room - FRAME_HEADER) as u32;
        Piece {
            padding,
            block: block.then_some(BlockHeader {
                first_offset: self.offset,
            }),
            frame: FrameHeader { stream, len, time },
        }
    }

    /// Returns the tail behind a piece.
    pub const fn advance(&self, piece: &Piece) -> Self {
        Self {
            position: self.position + piece.size() as u64,
            offset: self.offset + piece.frame.len as u64,
        }
    }
}

impl Piece {
    /// The number of output bytes in the piece.
    pub const fn output(&self) -> usize {
        self.frame.len as usize
    }

    /// The number of file bytes of the piece.
    pub const fn size(&self) -> usize {
        let block = if self.block.is_some() {
            BLOCK_HEADER
        } else {
            0
        };
        self.padding + block + FRAME_HEADER + self.output()
    }

    /// Returns the bytes to write before the output bytes.
    pub fn head(&self) -> Head {
        let mut head = Head {
            bytes: [0; MAX_HEAD],
            len: self.padding,
        };
        if let Some(block) = self.block {
            head.push(&block.encode());
        }
        head.push(&self.frame.encode());
        head
    }
}

impl Head {
    pub const EMPTY: Self = Self {
        bytes: [0; MAX_HEAD],
        len: 0,
    };

    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(free) = self.bytes.get_mut(self.len..end) {
            free.copy_from_slice(bytes);
            self.len = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::block_position;
    use std::vec::Vec;

    /// The blocks of a file, without its header page.
    #[derive(Default)]
    struct Blocks {
        bytes: Vec<u8>,
    }

    impl Blocks {
        fn append(&mut self, tail: &mut Tail, stream: Stream, mut data: &[u8]) -> usize {
            let mut pieces = 0;
            while !data.is_empty() {
                let piece = tail.piece(stream, Stamp::default(), data.len());
                let (now, later) = data.split_at(piece.output());
                assert_eq!(BLOCKS_START + self.bytes.len() as u64, tail.position());
                self.bytes.extend_from_slice(piece.head().as_bytes());
                self.bytes.extend_from_slice(now);
                *tail = tail.advance(&piece);
                data = later;
                pieces += 1;
            }
            pieces
        }

        /// Returns the bytes of every frame, read by the format alone.
        fn read(&self) -> Vec<(Stream, Vec<u8>)> {
            let mut out = Vec::new();
            let mut offset = 0;
            for block in self.bytes.chunks(BLOCK_SIZE) {
                let header = block[..BLOCK_HEADER].try_into().expect("whole");
                let header = BlockHeader::decode(header).expect("a block begins with its header");
                assert_eq!(header.first_offset, offset);
                let mut rest = &block[BLOCK_HEADER..];
                while let Some((head, body)) = rest.split_at_checked(FRAME_HEADER) {
                    let head = head.try_into().expect("whole");
                    let Some(frame) = FrameHeader::decode(head) else {
                        break;
                    };
                    let (data, later) = body.split_at(frame.len as usize);
                    out.push((frame.stream, data.to_vec()));
                    offset += u64::from(frame.len);
                    rest = later;
                }
            }
            out
        }
    }

    fn pattern(len: usize, seed: usize) -> Vec<u8> {
        (0..len).map(|i| ((i * 31 + seed) % 251) as u8).collect()
    }

    #[test]
    fn appended_output_is_read_back_in_order() {
        for step in [1, 19, 20, 21, 100, 4096, 65_471, 65_492, 65_536] {
            let (mut blocks, mut tail) = (Blocks::default(), Tail::EMPTY);
            let (mut written, mut count) = (Vec::new(), 0);
            while written.len() < 300_000 {
                let data = pattern(step, count);
                assert!(
                    blocks.append(&mut tail, Stream::Stdout, &data) <= 3,
                    "{step}"
                );
                written.extend_from_slice(&data);
                count += 1;
            }
            let read: Vec<u8> = blocks
                .read()
                .into_iter()
                .flat_map(|(_, data)| data)
                .collect();
            assert!(read == written, "chunks of {step}");
            assert_eq!(tail.offset(), written.len() as u64);
        }
    }

    #[test]
    fn a_block_without_room_for_a_byte_is_padded() {
        for room in 0..=FRAME_HEADER {
            let (mut blocks, mut tail) = (Blocks::default(), Tail::EMPTY);
            let first = BLOCK_SIZE - BLOCK_HEADER - FRAME_HEADER - room;
            blocks.append(&mut tail, Stream::Stdout, &pattern(first, 1));
            blocks.append(&mut tail, Stream::Stderr, b"x");
            let begins = block_position(1) + (BLOCK_HEADER + FRAME_HEADER + 1) as u64;
            assert_eq!(tail.position(), begins, "room of {room}");
            let read = blocks.read();
            assert_eq!(read[1], (Stream::Stderr, b"x".to_vec()));
        }
    }

    #[test]
    fn a_piece_knows_its_size() {
        let mut tail = Tail::EMPTY;
        for len in [1, 70_000, 65_492, 3, 65_466] {
            let piece = tail.piece(Stream::Stderr, Stamp::default(), len);
            assert_eq!(piece.size(), piece.head().as_bytes().len() + piece.output());
            tail = tail.advance(&piece);
        }
    }
}
