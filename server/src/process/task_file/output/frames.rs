//! The frames of one block.

use heeler_shim::log::{
    BLOCK_HEADER, BlockHeader, FRAME_HEADER, FrameHeader, Stream as ShimStream,
};

use crate::task::{Chunk, Moment, Stream};

/// A frame, the offset of its first byte, and its bytes.
pub(super) type Frame<'a> = (u64, FrameHeader, &'a [u8]);

pub(super) fn block_header(block: &[u8]) -> Option<BlockHeader> {
    BlockHeader::decode(block.first_chunk()?)
}

/// Iterates over the frames of a block. The last one may have fewer bytes than its header says: they are
/// still being written, or never will be.
pub(super) fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    let mut offset = block_header(block).map(|header| header.first_offset);
    let mut rest = block.get(BLOCK_HEADER..).unwrap_or_default();
    std::iter::from_fn(move || {
        let at = offset?;
        let frame = FrameHeader::decode(rest.first_chunk()?)?;
        let body = &rest[FRAME_HEADER..];
        let bytes = &body[..body.len().min(frame.len as usize)];
        rest = &body[bytes.len()..];
        // A task can write its own file: a block may claim to begin at the end of all numbers.
        offset = Some(at.checked_add(bytes.len() as u64)?);
        (!bytes.is_empty()).then_some((at, frame, bytes))
    })
}

/// Cuts a frame to the part between `from` and `to`, and to `limit` bytes; `None` if nothing is left.
pub(super) fn cut(
    (at, frame, bytes): Frame<'_>,
    from: u64,
    to: u64,
    limit: usize,
) -> Option<Chunk> {
    let index = |offset: u64| {
        let index = usize::try_from(offset.saturating_sub(at)).unwrap_or(usize::MAX);
        index.min(bytes.len())
    };
    let (skip, until) = (index(from), index(to));
    let wanted = &bytes[skip.min(until)..until];
    let data = &wanted[..wanted.len().min(limit)];
    (!data.is_empty()).then(|| Chunk {
        offset: at + skip as u64,
        stream: match frame.stream {
            ShimStream::Stdout => Stream::Stdout,
            ShimStream::Stderr => Stream::Stderr,
        },
        at: Moment::from(frame.time).wall,
        data: data.to_vec(),
    })
}
