//! Output as text: valid UTF-8 that never ends inside a character.
//!
//! Each stream is decoded separately: a character that the other stream interrupts is returned whole, in
//! the chunk that completes it. An incomplete character at the end of an answer is left for the next
//! read, unless no byte will follow, or a gap does.

use heeler_proto::v1;

use super::convert;
use crate::{
    output::{
        plain::{LONGEST_PARTIAL, Stripper, incomplete_tail},
        select::Escapes,
    },
    supervisor::Piece,
    task::{Chunk, Item, Stream},
};

/// An incomplete character of one stream.
struct Partial {
    offset: u64,
    bytes: Vec<u8>,
}

/// Returns a piece of output as text, and the offset to continue from. `is_complete`: no byte will follow
/// the end.
pub(crate) fn view(
    piece: Piece,
    escapes: Escapes,
    is_complete: bool,
) -> (Vec<v1::OutputChunk>, u64) {
    let Piece {
        lead,
        offset,
        mut items,
        mut next,
        end,
        ..
    } = piece;
    let is_end = is_complete && next >= end;
    if !is_end
        && let Some(held) = first_partial(&items)
        // A stream that stops inside a character must not delay the other one for good.
        && (held > offset || next - held <= LONGEST_PARTIAL as u64)
    {
        cut(&mut items, held);
        next = held;
    }
    let strippers = match escapes {
        Escapes::Kept => None,
        Escapes::Removed => Some(strippers_after(&lead)),
    };
    (Decoder::new(strippers).decode(items), next)
}

/// The offset of the earliest incomplete character. One before a gap will never be completed.
fn first_partial(items: &[Item]) -> Option<u64> {
    let mut open: [Option<Partial>; 2] = [None, None];
    for item in items {
        match item {
            Item::Chunk(chunk) => {
                let slot = &mut open[chunk.stream as usize];
                *slot = split(slot.take(), chunk).1;
            }
            Item::Gap(_) => open = [None, None],
        }
    }
    let offsets = open.into_iter().flatten().map(|partial| partial.offset);
    offsets.min()
}

fn cut(items: &mut Vec<Item>, at: u64) {
    items.retain_mut(|item| match item {
        Item::Chunk(chunk) => {
            let keep = at.saturating_sub(chunk.offset).min(chunk.data.len() as u64);
            chunk.data.truncate(keep as usize);
            !chunk.data.is_empty()
        }
        Item::Gap(gap) => gap.offset < at,
    });
}

/// The state of escape sequences after some output.
fn strippers_after(lead: &[Item]) -> [Stripper; 2] {
    let mut strippers = [Stripper::default(); 2];
    for item in lead {
        match item {
            Item::Chunk(chunk) => drop(strippers[chunk.stream as usize].strip(&chunk.data)),
            Item::Gap(_) => strippers = [Stripper::default(); 2],
        }
    }
    strippers
}

struct Decoder {
    partials: [Option<Partial>; 2],
    /// The latest chunk of each stream, without its data.
    latest: [Option<Chunk>; 2],
    strippers: Option<[Stripper; 2]>,
    out: Vec<v1::OutputChunk>,
}

impl Decoder {
    fn new(strippers: Option<[Stripper; 2]>) -> Self {
        Self {
            partials: [None, None],
            latest: [None, None],
            strippers,
            out: Vec::new(),
        }
    }

    fn decode(mut self, items: Vec<Item>) -> Vec<v1::OutputChunk> {
        for item in items {
            match item {
                Item::Chunk(chunk) => self.take(chunk),
                Item::Gap(gap) => {
                    self.end_partials();
                    self.out.push(convert::gap(gap));
                }
            }
        }
        self.end_partials();
        self.out
    }

    fn take(&mut self, mut chunk: Chunk) {
        let slot = &mut self.partials[chunk.stream as usize];
        let (whole, partial) = split(slot.take(), &chunk);
        *slot = partial;
        self.push(&chunk, chunk.offset, &whole);
        chunk.data.clear();
        let stream = chunk.stream as usize;
        self.latest[stream] = Some(chunk);
    }

    /// Replaces characters that are incomplete and will never be completed.
    fn end_partials(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let partial = self.partials[stream as usize].take();
            if let (Some(partial), Some(chunk)) = (partial, self.latest[stream as usize].take()) {
                self.push(&chunk, partial.offset, &partial.bytes);
            }
        }
    }

    fn push(&mut self, chunk: &Chunk, offset: u64, bytes: &[u8]) {
        let stripped = self.strippers.as_mut().map(|strippers| {
            let stripper = &mut strippers[chunk.stream as usize];
            stripper.strip(bytes)
        });
        let shown = stripped.as_deref().unwrap_or(bytes);
        if !shown.is_empty() {
            let text = String::from_utf8_lossy(shown).into_owned();
            self.out.push(convert::text_chunk(chunk, offset, text));
        }
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
        offset,
        bytes: rest,
    });
    (bytes, partial)
}

#[cfg(test)]
mod tests {
    use v1::output_chunk::Content;

    use super::*;
    use crate::task::{Gap, GapCause, Timestamp};

    fn chunk(offset: u64, stream: Stream, data: &[u8]) -> Chunk {
        Chunk {
            offset,
            stream,
            at: Timestamp(0),
            data: data.to_vec(),
        }
    }

    /// The text of output that was read from offset 0 to its present end.
    fn shown(
        chunks: Vec<Chunk>,
        escapes: Escapes,
        is_complete: bool,
    ) -> (Vec<v1::OutputChunk>, u64) {
        let end = chunks.last().map_or(0, Chunk::end);
        let piece = Piece {
            items: chunks.into_iter().map(Item::Chunk).collect(),
            next: end,
            end,
            ..Piece::default()
        };
        view(piece, escapes, is_complete)
    }

    fn texts(chunks: &[v1::OutputChunk]) -> Vec<String> {
        let text = |chunk: &v1::OutputChunk| match &chunk.content {
            Some(Content::Text(text)) => text.clone(),
            Some(Content::Data(_) | Content::Gap(_)) | None => panic!("not text"),
        };
        chunks.iter().map(text).collect()
    }

    /// O5
    #[test]
    fn an_answer_never_ends_inside_a_character() {
        let bytes = "aé€🐕".as_bytes();
        for len in 1..=bytes.len() {
            let output = vec![chunk(0, Stream::Stdout, &bytes[..len])];
            let (chunks, next) = shown(output, Escapes::Kept, false);
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
        let (chunks, next) = shown(chunks, Escapes::Kept, false);
        assert_eq!(texts(&chunks), ["a", "!", "éb"]);
        assert_eq!(next, 5);
    }

    /// O5
    #[test]
    fn an_incomplete_character_at_the_end_of_the_output_is_replaced() {
        let (chunks, next) = shown(
            vec![chunk(0, Stream::Stdout, &[b'a', 0xC3])],
            Escapes::Kept,
            true,
        );
        assert_eq!(texts(&chunks).concat(), "a\u{FFFD}");
        assert_eq!(next, 2);
        let (chunks, _) = shown(
            vec![chunk(0, Stream::Stdout, &[0xFF, b'a'])],
            Escapes::Kept,
            false,
        );
        assert_eq!(texts(&chunks).concat(), "\u{FFFD}a");
    }

    /// O5, O8
    #[test]
    fn a_character_that_a_gap_interrupts_is_replaced_on_both_sides() {
        let gap = Gap {
            offset: 2,
            length: 10,
            cause: GapCause::Rotated,
            lines: None,
        };
        let items = vec![
            Item::Chunk(chunk(0, Stream::Stdout, &[b'a', 0xC3])),
            Item::Gap(gap),
            Item::Chunk(chunk(12, Stream::Stdout, &[0xA9, b'b', 0xC3])),
        ];
        let piece = Piece {
            items,
            next: 15,
            end: 15,
            ..Piece::default()
        };
        let (chunks, next) = view(piece, Escapes::Kept, false);
        let [a, cut, missing, b] = &chunks[..] else {
            panic!("{chunks:?}");
        };
        assert_eq!(missing, &convert::gap(gap));
        assert_eq!(texts(&[a.clone(), cut.clone()]).concat(), "a\u{FFFD}");
        assert_eq!(texts(std::slice::from_ref(b)), ["\u{FFFD}b"]);
        assert_eq!(next, 14);
    }

    #[test]
    fn a_stream_that_stops_inside_a_character_does_not_delay_the_other() {
        let chunks = vec![
            chunk(0, Stream::Stdout, &[0xC3]),
            chunk(1, Stream::Stderr, b"errors"),
        ];
        let (chunks, next) = shown(chunks, Escapes::Kept, false);
        assert_eq!(texts(&chunks), ["errors", "\u{FFFD}"]);
        assert_eq!(next, 7);
    }

    /// O5
    #[test]
    fn a_plain_view_knows_the_escape_sequence_that_began_before_it() {
        let output = b"one\x1b[1;31mtwo\x1b[0m\xC3\xA9three";
        for cut in 0..output.len() as u64 {
            let before = &output[..cut as usize];
            let piece = |lead: Vec<Item>, offset: u64, data: &[u8]| Piece {
                lead,
                offset,
                items: vec![Item::Chunk(chunk(offset, Stream::Stdout, data))],
                next: offset + data.len() as u64,
                end: output.len() as u64,
                is_caught_up: true,
                groups: None,
            };
            let (first, next) = view(piece(Vec::new(), 0, before), Escapes::Removed, false);
            let after = &output[next as usize..];
            let lead = vec![Item::Chunk(chunk(
                0,
                Stream::Stdout,
                &output[..next as usize],
            ))];
            let (second, _) = view(piece(lead, next, after), Escapes::Removed, true);
            let text = texts(&first).concat() + &texts(&second).concat();
            assert_eq!(text, "onetwoéthree", "{cut}");
        }
    }

    /// O8
    #[test]
    fn a_character_before_a_gap_is_not_waited_for() {
        let gap = Gap {
            offset: 2,
            length: 10,
            cause: GapCause::Lost,
            lines: None,
        };
        let piece = Piece {
            items: vec![
                Item::Chunk(chunk(0, Stream::Stdout, &[b'a', 0xC3])),
                Item::Gap(gap),
                Item::Chunk(chunk(12, Stream::Stdout, &[0xA9, b'b'])),
            ],
            next: 14,
            end: 14,
            ..Piece::default()
        };
        let (mut chunks, next) = view(piece, Escapes::Kept, false);
        assert_eq!(chunks.remove(2), convert::gap(gap));
        assert_eq!(texts(&chunks).concat(), "a\u{FFFD}\u{FFFD}b");
        assert_eq!(next, 14);
    }
}
