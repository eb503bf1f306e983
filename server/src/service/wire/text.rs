//! Output as text: valid UTF-8 that never begins or ends inside a character.
//!
//! Each stream is decoded separately: a character that the other stream interrupts is returned whole, in
//! the chunk that completes it. An incomplete character at the end of an answer is left for the next
//! read, unless no byte will follow.

use heeler_proto::v1;

use super::convert;
use crate::task::{Chunk, Stream};

/// Maximum length of an incomplete character.
const LONGEST_PARTIAL: usize = 3;

/// An incomplete character of one stream.
struct Partial {
    stream: Stream,
    offset: u64,
    bytes: Vec<u8>,
}

/// Returns the text of `chunks`, which were read from `offset`, and the offset to continue from.
/// `is_end` is true for an offset that no byte will follow.
pub(crate) fn view(
    offset: u64,
    mut chunks: Vec<Chunk>,
    is_end: impl Fn(u64) -> bool,
) -> (Vec<v1::OutputChunk>, u64) {
    let last = chunks.last();
    let mut next = last.map_or(offset, |chunk| chunk.offset + chunk.data.len() as u64);
    if !is_end(next)
        && let Some(held) = first_partial(&chunks)
        // A stream that stops inside a character must not delay the other one for good.
        && (held > offset || next - held <= LONGEST_PARTIAL as u64)
    {
        cut(&mut chunks, held);
        next = held;
    }
    (decode(chunks), next)
}

/// The offset of the earliest incomplete character.
fn first_partial(chunks: &[Chunk]) -> Option<u64> {
    let open = [Stream::Stdout, Stream::Stderr].map(|stream| {
        let mut partial: Option<Partial> = None;
        for chunk in chunks.iter().filter(|chunk| chunk.stream == stream) {
            partial = split(partial, chunk).1;
        }
        partial.map(|partial| partial.offset)
    });
    open.into_iter().flatten().min()
}

fn cut(chunks: &mut Vec<Chunk>, at: u64) {
    chunks.retain_mut(|chunk| {
        let keep = at.saturating_sub(chunk.offset).min(chunk.data.len() as u64);
        chunk.data.truncate(keep as usize);
        !chunk.data.is_empty()
    });
}

fn decode(chunks: Vec<Chunk>) -> Vec<v1::OutputChunk> {
    let mut partials: [Option<Partial>; 2] = [None, None];
    let mut out: Vec<v1::OutputChunk> = Vec::with_capacity(chunks.len());
    for chunk in &chunks {
        let slot = &mut partials[chunk.stream as usize];
        let (whole, partial) = split(slot.take(), chunk);
        *slot = partial;
        if !whole.is_empty() {
            out.push(text_chunk(chunk, chunk.offset, &whole));
        }
    }
    // A character that is still incomplete will never be completed.
    for partial in partials.into_iter().flatten() {
        if let Some(chunk) = chunks.iter().rfind(|chunk| chunk.stream == partial.stream) {
            out.push(text_chunk(chunk, partial.offset, &partial.bytes));
        }
    }
    out
}

fn text_chunk(chunk: &Chunk, offset: u64, bytes: &[u8]) -> v1::OutputChunk {
    v1::OutputChunk {
        offset,
        stream: convert::stream(chunk.stream).into(),
        read_time: Some(convert::timestamp(chunk.at)),
        content: Some(v1::output_chunk::Content::Text(
            String::from_utf8_lossy(bytes).into_owned(),
        )),
    }
}

/// Returns the complete characters of a chunk, continuing an incomplete one, and the incomplete
/// character at its end.
fn split(open: Option<Partial>, chunk: &Chunk) -> (Vec<u8>, Option<Partial>) {
    let start = open.as_ref().map_or(chunk.offset, |partial| partial.offset);
    let carried = open.as_ref().map_or(0, |partial| partial.bytes.len());
    let mut bytes = open.map(|partial| partial.bytes).unwrap_or_default();
    bytes.extend_from_slice(&chunk.data);
    let keep = bytes.len() - incomplete_tail(&bytes);
    let rest = bytes.split_off(keep);
    let offset = match keep >= carried {
        true => chunk.offset + (keep - carried) as u64,
        false => start,
    };
    let partial = (!rest.is_empty()).then_some(Partial {
        stream: chunk.stream,
        offset,
        bytes: rest,
    });
    (bytes, partial)
}

/// The number of bytes at the end that begin an incomplete character.
fn incomplete_tail(bytes: &[u8]) -> usize {
    for len in 1..=LONGEST_PARTIAL.min(bytes.len()) {
        let tail = &bytes[bytes.len() - len..];
        if let Err(error) = str::from_utf8(tail)
            && error.valid_up_to() == 0
            && error.error_len().is_none()
        {
            return len;
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use v1::output_chunk::Content;

    use super::*;
    use crate::task::Timestamp;

    fn chunk(offset: u64, stream: Stream, data: &[u8]) -> Chunk {
        Chunk {
            offset,
            stream,
            at: Timestamp(0),
            data: data.to_vec(),
        }
    }

    fn texts(chunks: &[v1::OutputChunk]) -> Vec<String> {
        let text = |chunk: &v1::OutputChunk| match &chunk.content {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Data(_)) | None => panic!("not text"),
        };
        chunks.iter().map(text).collect()
    }

    /// O5
    #[test]
    fn an_answer_never_ends_inside_a_character() {
        let bytes = "aé€🐕".as_bytes();
        for len in 1..=bytes.len() {
            let (chunks, next) = view(0, vec![chunk(0, Stream::Stdout, &bytes[..len])], |_| false);
            let whole: String = texts(&chunks).concat();
            assert!("aé€🐕".starts_with(&whole), "{len}: {whole:?}");
            assert_eq!(next, whole.len() as u64, "{len}");
        }
    }

    /// O5
    #[test]
    fn a_character_that_the_other_stream_interrupts_is_returned_whole() {
        let chunks = vec![
            chunk(0, Stream::Stdout, &[b'a', 0xC3]),
            chunk(2, Stream::Stderr, b"!"),
            chunk(3, Stream::Stdout, &[0xA9, b'b']),
        ];
        let (chunks, next) = view(0, chunks, |_| false);
        assert_eq!(texts(&chunks), ["a", "!", "éb"]);
        assert_eq!(next, 5);
    }

    /// O5
    #[test]
    fn an_incomplete_character_at_the_end_of_the_output_is_replaced() {
        let (chunks, next) = view(0, vec![chunk(0, Stream::Stdout, &[b'a', 0xC3])], |_| true);
        assert_eq!(texts(&chunks).concat(), "a\u{FFFD}");
        assert_eq!(next, 2);
        let (chunks, _) = view(0, vec![chunk(0, Stream::Stdout, &[0xFF, b'a'])], |_| false);
        assert_eq!(texts(&chunks).concat(), "\u{FFFD}a");
    }

    #[test]
    fn a_stream_that_stops_inside_a_character_does_not_delay_the_other() {
        let chunks = vec![
            chunk(0, Stream::Stdout, &[0xC3]),
            chunk(1, Stream::Stderr, b"errors"),
        ];
        let (chunks, next) = view(0, chunks, |_| false);
        assert_eq!(texts(&chunks), ["errors", "\u{FFFD}"]);
        assert_eq!(next, 7);
    }
}
