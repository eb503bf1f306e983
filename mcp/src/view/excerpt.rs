//! Output for a context window: all of it if it is small, else its beginning and its end with the number
//! of bytes between them, cut at line ends.

use heeler_client::{
    Client,
    v1::{
        OutputChunk, OutputGapCause, OutputView, ReadOutputRequest, output_chunk::Content,
        read_output_request::Start,
    },
};

use super::bytes;
use crate::problem::Problem;

/// The bounds of an answer, in bytes of output.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit(u32);

impl Limit {
    /// About 4,000 tokens.
    pub(crate) const DEFAULT: Self = Self(16 * 1024);
    /// A share of the default, for answers with several outputs.
    pub(crate) const SMALL: Self = Self(4 * 1024);

    pub(crate) fn of(asked: Option<u32>) -> Self {
        asked.map_or(Self::DEFAULT, Self)
    }

    pub(crate) fn bytes(self) -> u32 {
        self.0
    }
}

/// A part of a task's output.
#[derive(Debug, Clone, Default)]
pub(crate) struct Excerpt {
    pub(crate) text: String,
    /// The offset after the part.
    pub(crate) next: u64,
    /// Bytes of output written so far.
    pub(crate) end: u64,
    /// True if the task is finished.
    pub(crate) complete: bool,
    /// The part left out in the middle: its first offset and its length.
    pub(crate) omitted: Option<(u64, u64)>,
}

/// The part to read.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// From an offset to the present end; the middle is left out if it is too long.
    Since(u64),
    /// From an offset, as much as fits.
    From(u64),
}

impl Excerpt {
    pub(crate) async fn read(
        client: &Client,
        id: &str,
        part: Part,
        limit: Limit,
    ) -> Result<Self, Problem> {
        match part {
            Part::From(offset) => Self::piece(client, id, offset, limit.bytes()).await,
            Part::Since(offset) => {
                let read = |offset, most| Self::piece(client, id, offset, most);
                Self::since(read, offset, limit).await
            }
        }
    }

    /// Reads both ends with `read`, which takes an offset and the most bytes to return.
    async fn since<F>(
        read: impl Fn(u64, u32) -> F,
        offset: u64,
        limit: Limit,
    ) -> Result<Self, Problem>
    where
        F: Future<Output = Result<Self, Problem>>,
    {
        let half = limit.bytes() / 2;
        let whole = read(offset, limit.bytes()).await?;
        if whole.next >= whole.end {
            return Ok(whole);
        }
        let tail_start = whole.end.saturating_sub(half.into());
        if tail_start <= whole.next {
            let rest = read(whole.next, half).await?;
            return Ok(whole.followed_by(rest));
        }
        let mut head = read(offset, half).await?;
        // Output that was dropped since the first read is skipped, and the head may end anywhere.
        if tail_start <= head.next {
            let rest = read(head.next, half).await?;
            return Ok(head.followed_by(rest));
        }
        let mut head_end = head.next;
        // Where escape sequences were removed, an offset in the text is none in the output.
        if head.text.len() as u64 == head.next - offset {
            head_end -= cut_after_last_line(&mut head.text) as u64;
        }
        let mut tail = read(tail_start, half).await?;
        let mut length = tail_start - head_end;
        if tail.text.len() as u64 == tail.next - tail_start {
            length += cut_before_first_line(&mut tail.text) as u64;
        }
        let note = format!("[… {} omitted here …]\n", bytes(length));
        Ok(Self {
            text: format!("{}{note}{}", head.text, tail.text),
            omitted: Some((head_end, length)),
            ..tail
        })
    }

    /// The part of a read whose cursor may have been beyond the end.
    pub(crate) fn bounded(mut self) -> Self {
        self.next = self.next.min(self.end);
        self
    }

    /// The part that this one and the next make up.
    fn followed_by(self, rest: Self) -> Self {
        Self {
            text: self.text + &rest.text,
            ..rest
        }
    }

    async fn piece(client: &Client, id: &str, offset: u64, most: u32) -> Result<Self, Problem> {
        let answer = client
            .read_output(ReadOutputRequest {
                task_id: id.to_owned(),
                start: Some(Start::Offset(offset)),
                max_bytes: most,
                view: OutputView::Plain.into(),
                ..ReadOutputRequest::default()
            })
            .await?;
        Ok(Self {
            text: text_of(&answer.chunks),
            next: answer.next_offset,
            end: answer.end_offset,
            complete: answer.complete,
            omitted: None,
        })
    }
}

/// The text of chunks, with a note for each gap.
pub(crate) fn text_of(chunks: &[OutputChunk]) -> String {
    let mut text = String::new();
    for chunk in chunks {
        match &chunk.content {
            Some(Content::Text(piece)) => text.push_str(piece),
            Some(Content::Data(data)) => text.push_str(&String::from_utf8_lossy(data)),
            Some(Content::Gap(gap)) => {
                let cause = match gap.cause() {
                    OutputGapCause::Unspecified => "missing",
                    OutputGapCause::Rotated => "dropped, because the task wrote more than is kept",
                    OutputGapCause::Truncated => "beyond the limit of this task's output",
                    OutputGapCause::Lost => "lost",
                    OutputGapCause::Omitted => "omitted here",
                };
                let count = bytes(gap.length);
                text.push_str(&format!("\n[… {count} {cause} …]\n"));
            }
            None => {}
        }
    }
    text
}

/// Removes an incomplete last line, unless it is all there is. Returns the number of bytes removed.
fn cut_after_last_line(text: &mut String) -> usize {
    match text.trim_end_matches('\n').rfind('\n') {
        Some(end) if !text.ends_with('\n') => {
            let dropped = text.len() - (end + 1);
            text.truncate(end + 1);
            dropped
        }
        Some(_) => 0,
        None => {
            text.push('\n');
            0
        }
    }
}

/// Removes an incomplete first line, unless it is all there is. Returns the number of bytes removed.
fn cut_before_first_line(text: &mut String) -> usize {
    match text.find('\n') {
        Some(end) if end + 1 < text.len() => {
            text.drain(..=end);
            end + 1
        }
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, future::ready};

    use super::*;

    /// M3
    #[test]
    fn a_cut_keeps_whole_lines_or_the_only_line() {
        let mut text = "one\ntwo\nthr".to_owned();
        assert_eq!(cut_after_last_line(&mut text), 3);
        assert_eq!(text, "one\ntwo\n");
        let mut text = "two\nthree\n".to_owned();
        assert_eq!(cut_before_first_line(&mut text), 4);
        assert_eq!(text, "three\n");
        let mut only = "xxxx".to_owned();
        assert_eq!((cut_after_last_line(&mut only), &*only), (0, "xxxx\n"));
        let mut only = "xxxx\n".to_owned();
        assert_eq!((cut_before_first_line(&mut only), &*only), (0, "xxxx\n"));
    }

    /// M3: between the two reads of the head, a task writes so much that the beginning is dropped.
    #[tokio::test]
    async fn a_head_that_moves_beyond_the_tail_is_continued() {
        let reads = Cell::new(0);
        let read = |offset: u64, most: u32| {
            reads.set(reads.get() + 1);
            let (begin, end) = match reads.get() {
                1 => (0, 1_000),
                _ => (5_000, 6_000),
            };
            let start = offset.max(begin);
            let next = end.min(start + u64::from(most));
            let text = format!("{start}-{next} ");
            ready(Ok(Excerpt {
                text,
                next,
                end,
                ..Excerpt::default()
            }))
        };
        let excerpt = Excerpt::since(read, 0, Limit::of(Some(100))).await.unwrap();
        assert_eq!(excerpt.text, "5000-5050 5050-5100 ");
        assert_eq!((excerpt.next, excerpt.end), (5_100, 6_000));
        assert_eq!(excerpt.omitted, None);
    }
}
