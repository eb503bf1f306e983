//! Reading a task's output: to its present end or to its last byte, from its beginning or from its
//! last lines.

use std::time::Duration;

use heeler_client::{
    Chunk, Client, Error, time,
    v1::{OutputStream, ReadOutputRequest, ReadOutputResponse, read_output_request::Start},
};

/// How long one call waits for output; then it is asked again.
const POLL: Duration = Duration::from_secs(60);
/// How much is read at once.
const PAGE: u32 = 256 << 10;

/// Which streams are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Select {
    /// Both.
    Both,
    /// One alone.
    Only(OutputStream),
}

impl Select {
    pub(crate) fn has(self, stream: OutputStream) -> bool {
        match self {
            Self::Both => true,
            Self::Only(wanted) => wanted == stream,
        }
    }
}

/// How far to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// What there is now.
    Present,
    /// The last byte there will ever be.
    End,
}

/// A place in a task's output, and how far to go from there.
#[derive(Debug)]
pub(crate) struct Reader {
    client: Client,
    id: String,
    offset: u64,
    until: Until,
    /// The end as it was at the first page.
    present: Option<u64>,
    over: bool,
}

impl Reader {
    pub(crate) fn new(client: Client, id: String, offset: u64, until: Until) -> Self {
        Self {
            client,
            id,
            offset,
            until,
            present: None,
            over: false,
        }
    }

    /// The next page; none: that was all.
    pub(crate) async fn page(&mut self) -> Result<Option<ReadOutputResponse>, Error> {
        if self.over {
            return Ok(None);
        }
        let wait = match self.until {
            Until::Present => None,
            Until::End => Some(time::to_proto(POLL)),
        };
        let request = ReadOutputRequest {
            task_id: self.id.clone(),
            start: Some(Start::Offset(self.offset)),
            max_bytes: PAGE,
            wait,
            ..ReadOutputRequest::default()
        };
        let page = self.client.read_output(request).await?;
        let present = *self.present.get_or_insert(page.end_offset);
        self.over = match self.until {
            Until::Present => page.next_offset >= present || page.chunks.is_empty(),
            Until::End => page.complete && page.next_offset >= page.end_offset,
        };
        self.offset = page.next_offset;
        Ok(Some(page))
    }
}

/// The offset at which the last `count` lines of the selected streams begin.
pub(crate) async fn last_lines(
    client: &Client,
    id: &str,
    count: u64,
    select: Select,
) -> Result<u64, Error> {
    let mut begin = read(client, id, Start::TailBytes(0)).await?.end_offset;
    let Some(mut search) = Search::new(count) else {
        return Ok(begin);
    };
    while begin > 0 {
        let chunks = before(client, id, begin).await?;
        if let Some(found) = search.back_through(&chunks, begin, select) {
            return Ok(found);
        }
        match chunks.first() {
            Some(first) if first.offset < begin => begin = first.offset,
            // What was there before has been dropped.
            Some(_) | None => break,
        }
    }
    Ok(begin)
}

/// What lies before this offset, as far back as a page; it may reach beyond.
async fn before(client: &Client, id: &str, end: u64) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    let mut offset = end.saturating_sub(PAGE.into());
    // The daemon may give less than was asked for.
    while offset < end {
        let page = read(client, id, Start::Offset(offset)).await?;
        if page.next_offset <= offset {
            break;
        }
        chunks.extend(page.chunks.into_iter().map(Chunk::from));
        offset = page.next_offset;
    }
    Ok(chunks)
}

async fn read(client: &Client, id: &str, start: Start) -> Result<ReadOutputResponse, Error> {
    let request = ReadOutputRequest {
        task_id: id.to_owned(),
        start: Some(start),
        max_bytes: PAGE,
        ..ReadOutputRequest::default()
    };
    client.read_output(request).await
}

/// A search for the beginning of the last lines, from the end backwards.
#[derive(Debug)]
struct Search {
    /// Ends of lines still to be passed; never 0.
    left: u64,
    /// The very last byte ends the last line, and begins none.
    at_end: bool,
}

impl Search {
    /// None if there is nothing to search for.
    fn new(count: u64) -> Option<Self> {
        (count > 0).then_some(Self {
            left: count,
            at_end: true,
        })
    }

    /// Goes back through a page, as far as it lies before `end`; the offset, once found.
    fn back_through(&mut self, chunks: &[Chunk], end: u64, select: Select) -> Option<u64> {
        for chunk in chunks.iter().rev().filter(|chunk| select.has(chunk.stream)) {
            let inside = usize::try_from(end.saturating_sub(chunk.offset)).unwrap_or(usize::MAX);
            for (place, &byte) in chunk.data.iter().enumerate().take(inside).rev() {
                let last = std::mem::replace(&mut self.at_end, false);
                if byte == b'\n' && !last {
                    self.left -= 1;
                    if self.left == 0 {
                        return Some(chunk.offset + place as u64 + 1);
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    /// Chunks that alternate between stdout and stderr.
    fn chunks(first: u64, texts: &[&'static str]) -> Vec<Chunk> {
        let mut offset = first;
        let streams = [OutputStream::Stdout, OutputStream::Stderr]
            .into_iter()
            .cycle();
        let chunk = |(text, stream): (&&'static str, _)| {
            let data = (*text).into();
            let chunk = Chunk {
                offset,
                stream,
                read_time: SystemTime::UNIX_EPOCH,
                data,
            };
            offset = chunk.end();
            chunk
        };
        texts.iter().zip(streams).map(chunk).collect()
    }

    fn last(count: u64, texts: &[&'static str], select: Select) -> Option<u64> {
        Search::new(count)
            .unwrap()
            .back_through(&chunks(0, texts), u64::MAX, select)
    }

    #[test]
    fn the_last_lines_are_found_with_and_without_a_final_newline() {
        assert_eq!(last(1, &["a\nb\nc\n"], Select::Both), Some(4));
        assert_eq!(last(2, &["a\nb\nc\n"], Select::Both), Some(2));
        assert_eq!(last(1, &["a\nb\nc"], Select::Both), Some(4));
        assert_eq!(last(3, &["a\nb\nc"], Select::Both), None, "all of it");
        assert_eq!(last(1, &["\n\n"], Select::Both), Some(1));
    }

    #[test]
    fn lines_are_counted_in_the_stream_that_was_asked_for() {
        let texts = ["a\n", "x\n", "b\n", "y\n"];
        assert_eq!(last(2, &texts, Select::Both), Some(4));
        assert_eq!(last(1, &texts, Select::Only(OutputStream::Stdout)), Some(2));
        assert_eq!(last(2, &texts, Select::Only(OutputStream::Stderr)), None);
    }

    #[test]
    fn a_search_goes_on_over_pages_that_overlap() {
        let mut search = Search::new(2).unwrap();
        assert_eq!(
            search.back_through(&chunks(6, &["c\nd\n"]), 10, Select::Both),
            None
        );
        let earlier = chunks(0, &["a\nbbb\nc\n"]);
        assert_eq!(search.back_through(&earlier, 6, Select::Both), Some(6));
    }
}
