//! Reads a task's output page by page, and finds the offset of its last lines.

use std::time::Duration;

use heeler_client::{
    Chunk, Client, Error, time,
    v1::{OutputStream, ReadOutputRequest, ReadOutputResponse, read_output_request::Start},
};

/// The time for which one call waits for output.
const POLL: Duration = Duration::from_secs(60);
/// The number of bytes in a page.
const PAGE: u32 = 256 << 10;

/// The output streams to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    Both,
    Only(OutputStream),
}

impl Streams {
    pub(crate) fn contains(self, stream: OutputStream) -> bool {
        match self {
            Self::Both => true,
            Self::Only(wanted) => wanted == stream,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The end at the time of the first page.
    Present,
    /// The last byte of a finished task.
    End,
}

#[derive(Debug)]
pub(crate) struct OutputReader {
    client: Client,
    id: String,
    offset: u64,
    until: Until,
    /// The end offset in the first page.
    present: Option<u64>,
    done: bool,
}

impl OutputReader {
    pub(crate) fn new(client: Client, id: String, offset: u64, until: Until) -> Self {
        Self {
            client,
            id,
            offset,
            until,
            present: None,
            done: false,
        }
    }

    /// The next page; none after the last one.
    pub(crate) async fn page(&mut self) -> Result<Option<ReadOutputResponse>, Error> {
        if self.done {
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
        self.done = match self.until {
            Until::Present => page.next_offset >= present || page.chunks.is_empty(),
            Until::End => page.complete && page.next_offset >= page.end_offset,
        };
        self.offset = page.next_offset;
        Ok(Some(page))
    }
}

/// The offset at which the last `count` lines of these streams begin.
pub(crate) async fn last_lines(
    client: &Client,
    id: &str,
    count: u64,
    streams: Streams,
) -> Result<u64, Error> {
    let end = read(client, id, Start::TailBytes(0)).await?;
    // Output that was dropped at the end is a gap.
    let mut begin = end.chunks.first().map_or(end.end_offset, |gap| gap.offset);
    let Some(mut search) = LineSearch::new(count) else {
        return Ok(begin);
    };
    while begin > 0 {
        let chunks = before(client, id, begin).await?;
        if let Some(found) = search.back_through(&chunks, begin, streams) {
            return Ok(found);
        }
        match chunks.first() {
            // Earlier output was dropped.
            Some(first) if first.gap.is_some() => return Ok(first.end().min(begin)),
            Some(first) if first.offset < begin => begin = first.offset,
            Some(_) | None => break,
        }
    }
    Ok(begin)
}

/// The chunks of the page before this offset; the last one may reach beyond it.
async fn before(client: &Client, id: &str, end: u64) -> Result<Vec<Chunk>, Error> {
    let mut chunks = Vec::new();
    let mut offset = end.saturating_sub(PAGE.into());
    // A response may have less than was asked for.
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

/// A backward search for the beginning of the last lines.
#[derive(Debug)]
struct LineSearch {
    /// Newlines still to be passed; never 0.
    left: u64,
    /// The next byte is the last one of the output: a newline there begins no line.
    at_end: bool,
}

impl LineSearch {
    /// Returns none for 0 lines.
    fn new(count: u64) -> Option<Self> {
        (count > 0).then_some(Self {
            left: count,
            at_end: true,
        })
    }

    /// Searches a page before `end`, and returns the offset if it is found.
    fn back_through(&mut self, chunks: &[Chunk], end: u64, streams: Streams) -> Option<u64> {
        let wanted = |chunk: &&Chunk| streams.contains(chunk.stream);
        for chunk in chunks.iter().rev().filter(wanted) {
            let inside = usize::try_from(end.saturating_sub(chunk.offset)).unwrap_or(usize::MAX);
            for (index, &byte) in chunk.data.iter().enumerate().take(inside).rev() {
                let last = std::mem::replace(&mut self.at_end, false);
                if byte == b'\n' && !last {
                    self.left -= 1;
                    if self.left == 0 {
                        return Some(chunk.offset + index as u64 + 1);
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
                gap: None,
            };
            offset = chunk.end();
            chunk
        };
        texts.iter().zip(streams).map(chunk).collect()
    }

    fn last(count: u64, texts: &[&'static str], streams: Streams) -> Option<u64> {
        LineSearch::new(count)
            .unwrap()
            .back_through(&chunks(0, texts), u64::MAX, streams)
    }

    #[test]
    fn the_last_lines_are_found_with_and_without_a_final_newline() {
        assert_eq!(last(1, &["a\nb\nc\n"], Streams::Both), Some(4));
        assert_eq!(last(2, &["a\nb\nc\n"], Streams::Both), Some(2));
        assert_eq!(last(1, &["a\nb\nc"], Streams::Both), Some(4));
        assert_eq!(last(3, &["a\nb\nc"], Streams::Both), None, "all of it");
        assert_eq!(last(1, &["\n\n"], Streams::Both), Some(1));
    }

    #[test]
    fn lines_are_counted_in_the_selected_streams() {
        let texts = ["a\n", "x\n", "b\n", "y\n"];
        assert_eq!(last(2, &texts, Streams::Both), Some(4));
        assert_eq!(
            last(1, &texts, Streams::Only(OutputStream::Stdout)),
            Some(2)
        );
        assert_eq!(last(2, &texts, Streams::Only(OutputStream::Stderr)), None);
    }

    #[test]
    fn the_search_continues_over_pages_that_overlap() {
        let mut search = LineSearch::new(2).unwrap();
        assert_eq!(
            search.back_through(&chunks(6, &["c\nd\n"]), 10, Streams::Both),
            None
        );
        let earlier = chunks(0, &["a\nbbb\nc\n"]);
        assert_eq!(search.back_through(&earlier, 6, Streams::Both), Some(6));
    }
}
