//! The last lines of an output, within the bounds of an answer.

use heeler_client::v1::{ReadOutputResponse, read_output_request::Start};

use crate::{
    problem::Problem,
    view::{Excerpt, Limit, bytes, text_of},
};

/// The answer to one read.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The offset of the first byte. Absent if there is none.
    start: Option<u64>,
    pub(super) excerpt: Excerpt,
}

impl Piece {
    pub(super) fn of(answer: &ReadOutputResponse) -> Self {
        Self {
            start: answer.chunks.first().map(|chunk| chunk.offset),
            excerpt: Excerpt {
                text: text_of(&answer.chunks),
                next: answer.next_offset,
                end: answer.end_offset,
                complete: answer.complete,
                omitted: None,
            },
        }
    }

    fn reaches_the_end(&self) -> bool {
        self.excerpt.next >= self.excerpt.end
    }
}

/// Reads the last lines with `read`. Where they are longer than the limit, the first of them are left out, or the
/// beginning of the only one: the part ends at the end.
pub(super) async fn last_lines<F>(
    read: impl Fn(Start) -> F,
    lines: u32,
    limit: Limit,
) -> Result<Excerpt, Problem>
where
    F: Future<Output = Result<Piece, Problem>>,
{
    let asked = read(Start::TailLines(lines.into())).await?;
    if asked.reaches_the_end() {
        return Ok(asked.excerpt);
    }
    let (mut fit, mut too_many, mut last) = (0, lines, None);
    while too_many - fit > 1 {
        let middle = fit + (too_many - fit) / 2;
        let piece = read(Start::TailLines(middle.into())).await?;
        match piece.reaches_the_end() {
            true => (fit, last) = (middle, Some(piece)),
            false => too_many = middle,
        }
    }
    let last = match last {
        Some(last) => last,
        None => end_of_line(read, limit).await?,
    };
    Ok(without_beginning(last, asked.start))
}

/// The end of a line that is longer than the limit.
async fn end_of_line<F>(read: impl Fn(Start) -> F, limit: Limit) -> Result<Piece, Problem>
where
    F: Future<Output = Result<Piece, Problem>>,
{
    let whole = read(Start::TailBytes(limit.bytes().into())).await?;
    match whole.reaches_the_end() {
        true => Ok(whole),
        // A byte that is no UTF-8 is shown by three.
        false => read(Start::TailBytes((limit.bytes() / 3).into())).await,
    }
}

/// The part, with a note of what is missing before it.
fn without_beginning(last: Piece, asked: Option<u64>) -> Excerpt {
    let (begin, asked) = (last.start.unwrap_or(last.excerpt.end), asked.unwrap_or(0));
    let length = begin.saturating_sub(asked);
    let note = format!("[… {} omitted here …]\n", bytes(length));
    Excerpt {
        text: note + &last.excerpt.text,
        omitted: Some((asked, length)),
        ..last.excerpt
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use super::*;

    /// Reads from an output of lines of ten bytes each, at most 1024 bytes.
    fn read(start: Start) -> impl Future<Output = Result<Piece, Problem>> {
        let end = 5_000;
        let begin = match start {
            Start::TailLines(lines) => end - 10 * lines,
            Start::TailBytes(bytes) => end - bytes,
            Start::Offset(_) | Start::Since(_) | Start::HeadAndTail(_) => {
                unreachable!("not asked for")
            }
        };
        let excerpt = Excerpt {
            text: format!("from {begin}"),
            next: end.min(begin + 1024),
            end,
            ..Excerpt::default()
        };
        ready(Ok(Piece {
            start: Some(begin),
            excerpt,
        }))
    }

    /// M3
    #[tokio::test]
    async fn lines_that_do_not_fit_lose_their_beginning() {
        let limit = Limit::of(Some(1024));
        let all = last_lines(read, 100, limit).await.unwrap();
        assert_eq!((&*all.text, all.omitted), ("from 4000", None));
        let cut = last_lines(read, 300, limit).await.unwrap();
        assert_eq!(cut.text, "[… 1980 bytes omitted here …]\nfrom 3980");
        assert_eq!((cut.next, cut.omitted), (5_000, Some((2_000, 1_980))));
    }
}
